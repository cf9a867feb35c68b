"""HTTP in bounded time and with a bounded answer, whatever the server does, below any client.

HTTP timeouts count each read alone, so a server that sends a byte a second is never late. Here a
request runs on a thread of its own, which nobody waits for longer than asked; the connection of one
that is given up is shut down, which ends the thread too.
"""

import socket
import ssl
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import cached_property
from time import monotonic
from typing import Any

import httpx

_CONNECTED = ("connect_tcp.complete", "start_tls.complete")

_OF_THE_WIRE = (b"content-encoding", b"transfer-encoding", b"content-length")
"""Headers that would have a client unpack or count what was read as it came."""


class TooLarge(Exception):
    """The answer is larger than is taken."""


class BoundedTransport(httpx.BaseTransport):
    """Connections that are kept between requests. Threads may share it, processes may not."""

    def __init__(
        self, most_bytes: int, make: Callable[[], httpx.BaseTransport] | None = None
    ) -> None:
        """`most_bytes` of a body are taken; a compressed one is not asked for, nor unpacked.

        `make` makes the transport of a connection; httpx's own, if it is left out.
        """
        self._most_bytes = most_bytes
        self._make = make
        self._idle: list[_Line] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send and read all within the seconds of the request's read timeout, together.

        Raises httpx.ReadTimeout, TooLarge, or what else of httpx the connection met.
        """
        try:
            line = self._idle.pop()
        except IndexError:
            line = _Line(self._client())
        line.take()
        seconds = request.extensions["timeout"]["read"]
        request.headers["Accept-Encoding"] = "identity"
        request.extensions = {**request.extensions, "trace": line.trace}
        future: Future[httpx.Response] = Future()

        def run() -> None:
            try:
                response = self._send(line.http, request, monotonic() + seconds)
            except BaseException as error:  # the one who waits is to have it, whatever it is
                line.http.close()
                future.set_exception(error)
                return
            if line.give_back():
                self._idle.append(line)
            future.set_result(response)

        threading.Thread(target=run, name="post", daemon=True).start()
        try:
            return future.result(seconds)
        except BaseException as error:
            line.cut()
            if isinstance(error, TimeoutError):
                raise httpx.ReadTimeout("the answer is not whole in time") from None
            raise

    def close(self) -> None:
        """Close the connections that nothing runs on."""
        while self._idle:
            self._idle.pop().http.close()

    def _send(self, http: httpx.Client, request: httpx.Request, until: float) -> httpx.Response:
        response = http.send(request, stream=True)
        try:
            body = bytearray()
            for block in response.iter_raw():
                body += block
                if len(body) > self._most_bytes:
                    raise TooLarge
                if monotonic() > until:
                    raise TimeoutError
        finally:
            response.close()
        headers = [(k, v) for k, v in response.headers.raw if k.lower() not in _OF_THE_WIRE]
        return httpx.Response(response.status_code, headers=headers, content=bytes(body))

    def _client(self) -> httpx.Client:
        if self._make is not None:
            return httpx.Client(transport=self._make())
        return httpx.Client(verify=self._certificates)

    @cached_property
    def _certificates(self) -> ssl.SSLContext:
        return httpx.create_ssl_context()


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
        """End it; False where it was cut before, and the client is closed."""
        with self._lock:
            self._taken = False
        if self._cut:
            self.http.close()
        return not self._cut

    def cut(self) -> None:
        """End the request that is on its way, from another thread.

        Its socket is shut down and not closed: its number could be another file's while the
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
        """Httpcore's extension of this name: learn the connection; go no further after a cut."""
        if not name.endswith(_CONNECTED):
            return
        self._stream = info["return_value"]
        if self._cut:
            self._stream.close()
            raise TimeoutError
