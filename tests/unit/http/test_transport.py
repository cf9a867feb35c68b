"""HTTP with a deadline for the whole request, a size limit and a number of requests at a time."""

import ssl
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

from callslip.http.addresses import CheckedTransport
from callslip.http.transport import UNTIL, BoundedTransport, DeadlinePassed, TooLarge, direct


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.server.ports.add(self.client_address[1])  # type: ignore[attr-defined]
        self.send_response(200)
        if self.path == "/drip":
            self.end_headers()
            self.close_connection = True
            for _ in range(100):
                self.wfile.write(b" ")
                time.sleep(0.05)
            return
        body = b"x" * int(self.path[1:])
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing on the terminal."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    ports: set[int]

    def handle_error(self, *_: object) -> None:
        """Connections are cut on purpose."""


@pytest.fixture
def server() -> Iterator[_Server]:
    with _Server(("127.0.0.1", 0), _Handler) as made:
        made.ports = set()
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield made
        made.shutdown()


def client(
    server: _Server, most: int | None = None, *, whole: bool = True, at_once: int | None = None
) -> httpx.Client:
    transport = BoundedTransport(most, direct, whole=whole, at_once=at_once)
    return httpx.Client(
        transport=transport, timeout=5, base_url=f"http://127.0.0.1:{server.server_port}"
    )


def soon(seconds: float = 0.3) -> dict[str, float]:
    return {UNTIL: time.monotonic() + seconds}


def test_one_connection_serves_requests_in_turn(server: _Server) -> None:
    for whole in (True, False):
        with client(server, whole=whole) as http:
            for size in (0, 10, 100_000):
                assert len(http.get(f"/{size}").content) == size
    assert len(server.ports) == 2


@pytest.mark.parametrize("whole", [True, False])
def test_a_body_is_read_up_to_its_limit(server: _Server, whole: bool) -> None:
    with client(server, 1000, whole=whole) as http:
        assert len(http.get("/1000").content) == 1000
        with pytest.raises(TooLarge) as caught:
            http.get("/1001")
        assert caught.value.status == 200
        assert len(http.get("/1000").content) == 1000


@pytest.mark.parametrize("whole", [True, False])
def test_bytes_that_drip_in_do_not_move_the_deadline(server: _Server, whole: bool) -> None:
    with client(server, whole=whole) as http:
        start = time.monotonic()
        with pytest.raises(DeadlinePassed):
            http.get("/drip", extensions=soon())
        assert time.monotonic() - start < 1
        assert http.get("/5").content == b"xxxxx"


def test_an_answer_whose_body_is_not_read_is_closed(server: _Server) -> None:
    with client(server, whole=False, at_once=1) as http:
        for _ in range(3):
            with http.stream("GET", "/100000") as response:
                assert response.status_code == 200


def test_requests_beyond_the_number_at_a_time_wait_until_their_deadline(server: _Server) -> None:
    with client(server, whole=False, at_once=1) as http, http.stream("GET", "/10"):
        with pytest.raises(DeadlinePassed):
            http.get("/10", extensions=soon())
        assert len(server.ports) == 1, "it was not sent"


def test_checked_connections_share_the_certificates(monkeypatch: pytest.MonkeyPatch) -> None:
    CheckedTransport(()).close()

    def never(*_: object, **__: object) -> None:
        raise AssertionError("the certificates were read again")

    monkeypatch.setattr(ssl, "create_default_context", never)
    CheckedTransport(()).close()
