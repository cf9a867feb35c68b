"""A receiver of webhooks: a real HTTP server that fails, hangs, drips or answers as it is told."""

import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = Callable[[BaseHTTPRequestHandler], None]


def status(code: int) -> Answer:
    """Answer with a status and no body."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(code)
        handler.send_header("Content-Length", "0")
        handler.send_header("Location", "http://127.0.0.1:1/")
        handler.end_headers()

    return answer


def hang(handler: BaseHTTPRequestHandler) -> None:
    """Never answer."""
    handler.server.released.wait(30)  # type: ignore[attr-defined]


def drip(handler: BaseHTTPRequestHandler) -> None:
    """A byte of an endless header now and then, so that no single read takes long."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Long: ")
    try:
        while not handler.server.released.wait(0.05):  # type: ignore[attr-defined]
            handler.wfile.write(b"x")
    except OSError:
        handler.server.cut.set()  # type: ignore[attr-defined]


class Receiver:
    """Keeps what it was sent, as (headers, body)."""

    def __init__(self) -> None:
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.answer: Answer = status(204)
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.got.append(({k.lower(): v for k, v in self.headers.items()}, body))
                receiver.answer(self)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.released = threading.Event()  # type: ignore[attr-defined]
        self.server.cut = threading.Event()  # type: ignore[attr-defined]
        self._thread = threading.Thread(target=self.server.serve_forever, args=(0.02,))
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}/hook"

    @property
    def was_cut(self) -> bool:
        """Whether a dripping answer was cut by the other side."""
        return bool(self.server.cut.wait(10))  # type: ignore[attr-defined]

    def wait_for(self, count: int, seconds: float = 60.0) -> None:
        """Return once so many came."""
        until = time.monotonic() + seconds
        while len(self.got) < count:
            assert time.monotonic() < until, f"{len(self.got)} of {count} came"
            time.sleep(0.05)

    def close(self) -> None:
        self.server.released.set()  # type: ignore[attr-defined]
        self.server.shutdown()
        self.server.server_close()
        self._thread.join()
