"""A proxy in front of an HTTP server that records each request, and may ask for a key."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx


class Recorded:
    """The address of the proxy, and what it has seen since `clear`."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.requests: list[tuple[str, str]] = []
        self.key: str | None = None
        self.answer: tuple[int, bytes] | None = None

    def clear(self) -> None:
        """Record from nothing again, ask for no key, pass the server's answers."""
        self.requests.clear()
        self.key, self.answer = None, None


@contextmanager
def recording_proxy(server: str) -> Iterator[Recorded]:
    """The proxy on a free port of loopback. With `answer`, the server is not asked."""
    http = httpx.Client(base_url=server, timeout=60)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, *_: Any) -> None:
            pass

        def _pass(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            recorded.requests.append((self.command, self.path))
            status, content = self._answer(body)
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def _answer(self, body: bytes) -> tuple[int, bytes]:
            if recorded.key and self.headers.get("X-Chroma-Token") != recorded.key:
                return 403, b'{"error": "AuthError", "message": "Forbidden"}'
            if recorded.answer:
                return recorded.answer
            headers = {"content-type": "application/json"}
            response = http.request(self.command, self.path, content=body, headers=headers)
            return response.status_code, response.content

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _pass  # noqa: N815

    server_ = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    recorded = Recorded(f"http://127.0.0.1:{server_.server_address[1]}")
    thread = threading.Thread(target=server_.serve_forever, daemon=True)
    thread.start()
    try:
        yield recorded
    finally:
        server_.shutdown()
        server_.server_close()
        thread.join()
        http.close()
