"""HTTP with a deadline and a size limit for the whole response, below any client.

The timeouts of httpx bound single reads, so a server that sends one byte per second never exceeds
them. Here each request runs on its own thread, and the caller waits until the deadline of the whole
request and no longer. At the deadline the connection is shut down, which ends that thread, or ends
the caller's read of a streamed body.
"""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from functools import cache, cached_property
from time import monotonic
from typing import Any

import httpx

UNTIL = "until"
"""Extension of a request: the deadline of the whole request, on the monotonic clock. Redirects
share the deadline. By default it is the read timeout, in seconds from the start."""

_CONNECTED = ("connect_tcp.complete", "start_tls.complete")

_OF_THE_WIRE = (b"content-encoding", b"transfer-encoding", b"content-length")
"""Headers that would make a client decompress or count a body that was already read."""


class TooLarge(Exception):
    """The body is larger than the limit; `status` is that of the response."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class DeadlinePassed(httpx.ReadTimeout):
    """The response is not complete at the deadline of the request."""


@cache
def _own_certificates() -> ssl.SSLContext:
    return httpx.create_ssl_context(trust_env=False)


def direct() -> httpx.BaseTransport:
    """Connections without proxies or certificates from the environment."""
    return httpx.HTTPTransport(verify=_own_certificates(), trust_env=False)


class BoundedTransport(httpx.BaseTransport):
    """Connections that are reused between requests. Threads may share it, processes may not."""

    def __init__(
        self,
        most_bytes: int | None,
        make: Callable[[], httpx.BaseTransport] | None = None,
        *,
        whole: bool = True,
        at_once: int | None = None,
        headers_seconds: float | None = None,
    ) -> None:
        """Accept bodies of at most `most_bytes`; request none compressed, and decompress none.

        `make` makes the transport of one connection; by default httpx makes it. `whole`: the body
        is read before the response is returned; otherwise the body is a stream that ends at the
        deadline, and the headers arrive in `headers_seconds`. At most `at_once` requests run at a
        time; further requests wait until their deadline.
        """
        self._most_bytes = most_bytes
        self._make = make
        self._whole = whole
        self._headers_seconds = headers_seconds
        self._free = threading.BoundedSemaphore(at_once) if at_once else None
        self._idle: list[_Line] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send the request and read the whole response before the deadline.

        Raises DeadlinePassed, TooLarge, or the error of httpx for the connection.
        """
        until = request.extensions.get(UNTIL)
        if until is None:
            until = monotonic() + request.extensions["timeout"]["read"]
        if self._free and not self._free.acquire(timeout=max(0.0, until - monotonic())):
            raise DeadlinePassed("too many requests are waiting")
        line = self._take()
        request.headers["Accept-Encoding"] = "identity"
        request.extensions = {**request.extensions, "trace": line.trace}
        future: Future[httpx.Response] = Future()

        def run() -> None:
            try:
                response = self._send(line, request, until)
            except BaseException as error:  # the waiting thread raises it, whatever it is
                self._end(line, close=True)
                with suppress(InvalidStateError):
                    future.set_exception(error)
                return
            if self._whole:
                self._end(line)
            try:
                future.set_result(response)
            except InvalidStateError:  # the caller no longer waits
                response.close()

        threading.Thread(target=run, name="http", daemon=True).start()
        left = max(0.0, until - monotonic())
        try:
            return future.result(min(left, self._headers_seconds or left))
        except BaseException as error:
            line.cut()
            if not future.cancel() and future.exception() is None:
                future.result().close()  # it arrived at the last moment
            if isinstance(error, TimeoutError):
                raise DeadlinePassed("the answer is not whole in time") from None
            raise

    def close(self) -> None:
        """Close the connections that no request uses."""
        while self._idle:
            self._idle.pop().http.close()

    def _take(self) -> "_Line":
        try:
            line = self._idle.pop()
        except IndexError:
            line = _Line(self._client())
        line.take()
        return line

    def _end(self, line: "_Line", *, close: bool = False) -> None:
        """Release the line of a finished request for another one; with `close`, close it."""
        if close:
            line.http.close()
        elif line.give_back():
            self._idle.append(line)
        if self._free:
            self._free.release()

    def _send(self, line: "_Line", request: httpx.Request, until: float) -> httpx.Response:
        response = line.http.send(request, stream=True)
        body = _Body(response, line, self._most_bytes, until)
        if not self._whole:
            body.watch(lambda: self._end(line))
            return httpx.Response(response.status_code, headers=response.headers.raw, stream=body)
        try:
            content = b"".join(body)
        finally:
            response.close()
        headers = [(k, v) for k, v in response.headers.raw if k.lower() not in _OF_THE_WIRE]
        return httpx.Response(response.status_code, headers=headers, content=content)

    def _client(self) -> httpx.Client:
        if self._make is not None:
            return httpx.Client(transport=self._make())
        return httpx.Client(verify=self._certificates)

    @cached_property
    def _certificates(self) -> ssl.SSLContext:
        return httpx.create_ssl_context()


class _Body(httpx.SyncByteStream):
    """The blocks of a body, up to a size and a deadline."""

    def __init__(
        self, response: httpx.Response, line: "_Line", most_bytes: int | None, until: float
    ) -> None:
        self._response, self._line = response, line
        self._most_bytes, self._until = most_bytes, until
        self._timer: threading.Timer | None = None
        self._end: Callable[[], None] | None = None

    def watch(self, end: Callable[[], None]) -> None:
        """Cut the connection at the deadline; call `end` when the body is closed."""
        self._end = end
        self._timer = threading.Timer(max(0.0, self._until - monotonic()), self._line.cut)
        self._timer.daemon = True
        self._timer.start()

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        try:
            for block in self._response.iter_raw():
                size += len(block)
                if self._most_bytes is not None and size > self._most_bytes:
                    raise TooLarge(self._response.status_code)
                if monotonic() > self._until:
                    raise DeadlinePassed("the answer is not whole in time")
                yield block
            if monotonic() >= self._until and self._ends_with_connection():
                raise DeadlinePassed("the answer is not whole in time")
        except httpx.TransportError:
            if monotonic() >= self._until:  # the connection was shut down
                raise DeadlinePassed("the answer is not whole in time") from None
            raise

    def _ends_with_connection(self) -> bool:
        """Whether only the end of the connection, which a shutdown can cause, ends the body."""
        names = self._response.headers.keys()
        return "content-length" not in names and "transfer-encoding" not in names

    def close(self) -> None:
        """Release the connection, or close it if the body was not read to its end."""
        if self._timer:
            self._timer.cancel()
        self._response.close()
        end, self._end = self._end, None
        if end:
            end()


class _Line:
    """A client with one connection and one request at a time, which another thread can end."""

    def __init__(self, http: httpx.Client) -> None:
        self.http = http
        self._stream: Any = None
        self._lock = threading.Lock()
        self._taken = self._cut = False

    def take(self) -> None:
        """Begin a request."""
        self._taken = True

    def give_back(self) -> bool:
        """End the request; return False if it was cut before and the client is closed."""
        with self._lock:
            self._taken = False
        if self._cut:
            self.http.close()
        return not self._cut

    def cut(self) -> None:
        """End the current request, from another thread.

        Its socket is shut down and not closed: another file could get the socket's number while the
        request's own thread still reads from it.
        """
        with self._lock:
            if not self._taken:
                return
            self._cut = True
        if self._stream is not None:
            with suppress(OSError):
                self._stream.get_extra_info("socket").shutdown(socket.SHUT_RDWR)

    def trace(self, name: str, info: dict[str, Any]) -> None:
        """The trace hook of httpcore: store the connection; stop the request after a cut."""
        if not name.endswith(_CONNECTED):
            return
        self._stream = info["return_value"]
        if self._cut:
            self._stream.close()
            raise TimeoutError
