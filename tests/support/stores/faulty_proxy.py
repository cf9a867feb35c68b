"""A proxy on the wire that does one wrong thing at one request of a client."""

import random
import select
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress

LATENCY_SECONDS = 0.05

BLOCK = 1 << 20

NONSENSE = {
    "no JSON": b'{"error": ',
    "no text": b"\xff\xfe\x00{}",
    "another shape": b"{}",
    "a list": b"[1]",
}
"""Bodies of responses with the status 200, as a proxy or another program may send them."""


class Faults:
    """Counts the requests over several proxies; the one with the number `at` meets the fault.

    A request is what a client sends until it waits for an answer. Without `kind`, all are passed.
    With `lasts`, all later requests meet the fault too.
    """

    def __init__(self) -> None:
        self.kind = ""
        self.at = 0
        self.requests = 0
        self.lasts = False
        self._lock = threading.Lock()

    def begin(self, kind: str = "", at: int = 0, *, lasts: bool = False) -> None:
        """Count from 0 again, with another fault."""
        with self._lock:
            self.kind, self.at, self.requests, self.lasts = kind, at, 0, lasts

    def next(self) -> str:
        """The fault of the next request; empty if it has none."""
        with self._lock:
            self.requests += 1
            number = self.requests - 1
            return self.kind if number == self.at or (self.lasts and number > self.at) else ""


Kind = Callable[[socket.socket, socket.socket, bytes], bool]
"""Takes the sockets of the client and of the server, and the request; whether both stay open."""


def _latency(_: socket.socket, server: socket.socket, request: bytes) -> bool:
    threading.Event().wait(LATENCY_SECONDS)
    server.sendall(request)
    return True


def _reset(client: socket.socket, _: socket.socket, __: bytes) -> bool:
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()
    return False


def _reset_after(client: socket.socket, server: socket.socket, request: bytes) -> bool:
    """The request arrives, and its answer does not."""
    server.sendall(request)
    server.recv(BLOCK)
    return _reset(client, server, request)


def _half_open(_: socket.socket, __: socket.socket, ___: bytes) -> bool:
    return True  # the client waits for the answer to a request that went nowhere


def _lost(client: socket.socket, _: socket.socket, __: bytes) -> bool:
    """Nothing passes over this connection any more, and neither end is told."""
    while client.recv(BLOCK):
        pass
    return False


def _garbage(client: socket.socket, _: socket.socket, __: bytes) -> bool:
    client.sendall(random.Random(0).randbytes(300))
    return False


def _slow_close(client: socket.socket, server: socket.socket, request: bytes) -> bool:
    server.sendall(request)
    answer = server.recv(BLOCK)
    client.sendall(answer[: len(answer) // 2])
    threading.Event().wait(LATENCY_SECONDS)
    return False


def _answering(body: bytes) -> Kind:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"

    def answer(client: socket.socket, _: socket.socket, __: bytes) -> bool:
        client.sendall(head % len(body) + body)
        return False

    return answer


KINDS: Mapping[str, Kind] = {
    "latency": _latency,
    "reset": _reset,
    "reset after": _reset_after,
    "half open": _half_open,
    "lost": _lost,
    "garbage": _garbage,
    "slow close": _slow_close,
    **{name: _answering(body) for name, body in NONSENSE.items()},
}


@contextmanager
def faulty_proxy(port: int, faults: Faults) -> Iterator[int]:
    """A proxy before a port of loopback; its own port."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        opened: list[socket.socket] = []

        def accept() -> None:
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                try:
                    server = socket.create_connection(("127.0.0.1", port))
                except OSError:
                    client.close()
                    continue
                opened.extend((client, server))
                serve = threading.Thread(target=_serve, args=(client, server, faults), daemon=True)
                serve.start()

        accepting = threading.Thread(target=accept, daemon=True)
        accepting.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        accepting.join()  # so that no connection is opened after those below are closed
        for each in opened:
            _close(each)


def _serve(client: socket.socket, server: socket.socket, faults: Faults) -> None:
    """Pass what comes from either end until one closes, and do what is wrong in between."""
    with suppress(OSError, ValueError):  # an end was closed
        while True:
            for end in select.select((client, server), (), ())[0]:
                data = end.recv(BLOCK)
                if not data:
                    raise ConnectionError
                if end is server:
                    client.sendall(data)
                elif not (kind := faults.next()):
                    server.sendall(data)
                elif not KINDS[kind](client, server, data):
                    raise ConnectionError
    _close(client)
    _close(server)


def _close(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
