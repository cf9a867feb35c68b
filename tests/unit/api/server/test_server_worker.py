"""The worker of the API on the wire: slow clients have no thread and a deadline."""

import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from types import SimpleNamespace

import pytest
from flask import Flask, Response, request
from served import Served, rest, served

from callslip.api.http.admission import LONGEST_PAUSE, UPLOAD_SHARE, pause
from callslip.api.http.context import EXTENSION
from callslip.api.server.pools import MOST_UPLOADS
from callslip.config.settings import ApiSettings

SMALL = 1 << 13
LARGEST = 1_000_000
HOST = b"Host: localhost\r\n"
WRONG = "is there twice, wrong, or beside one that excludes it"

HEALTH = b"GET /healthz HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"


def small_app() -> Flask:
    app = Flask("served")
    app.config["MAX_CONTENT_LENGTH"] = LARGEST
    broken_off = threading.Event()
    app.extensions["broken_off"] = broken_off

    @app.before_request
    def _check() -> Response | None:
        return Response("no key", 401) if "X-Refused" in request.headers else None

    ended: list[int] = []
    app.extensions["ended"] = ended

    @app.after_request
    def _count(response: Response) -> Response:
        response.call_on_close(lambda: ended.append(response.status_code))
        return response

    @app.get("/healthz")
    def _health() -> str:
        return "ok"

    @app.post("/echo")
    def _echo() -> bytes:
        return request.get_data()

    room = threading.Event()
    app.extensions["room"] = room

    @app.post("/documents")
    def _documents() -> str:
        room.wait(10)
        return "taken"

    @app.post("/form")
    def _form() -> str:
        return str(len(request.files["file"].read()))

    @app.get("/large")
    def _large() -> bytes:
        return b"x" * (1 << 24)

    @app.get("/stream")
    def _stream() -> Response:
        def endless() -> Iterator[bytes]:
            try:
                while True:
                    yield b"y" * 65_536
            finally:
                broken_off.set()

        return Response(endless())

    return app


@pytest.fixture(scope="module")
def patient() -> Iterator[Served]:
    with served(small_app(), ApiSettings(connections=600)) as server:
        yield server


@pytest.fixture(scope="module")
def hasty() -> Iterator[Served]:
    """A server with short deadlines."""
    api = ApiSettings(header_seconds=0.3, stall_seconds=0.3, min_rate=10_000, keep_alive_seconds=1)
    with served(small_app(), api) as server:
        yield server


def post(path: str, body: bytes, *headers: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def is_healthy(server: Served) -> bool:
    before = time.monotonic()
    answer = server.exchange(HEALTH)
    return answer.startswith(b"HTTP/1.1 200 ") and time.monotonic() - before < 1.0


def test_no_response_names_the_server(patient: Served) -> None:
    head = patient.exchange(HEALTH).partition(b"\r\n\r\n")[0].lower()
    assert b"\r\ndate:" in head
    assert b"server:" not in head


def test_requests_follow_each_other_on_a_connection_also_if_they_were_sent_at_once(
    patient: Served,
) -> None:
    requests = [post("/echo", f"body {number}".encode()) for number in range(20)]
    answer = patient.exchange(b"".join(requests) + HEALTH)
    bodies = [part.rpartition(b"\r\n\r\n")[2] for part in answer.split(b"HTTP/1.1 200 OK\r\n")[1:]]
    assert bodies == [*(f"body {number}".encode() for number in range(20)), b"ok"]


@pytest.mark.parametrize("size", [0, 1, 65_536, 900_000])
@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_arrives_whole_however_it_is_cut(patient: Served, size: int, chunked: bool) -> None:
    body = os.urandom(size)
    if chunked:
        sent = b"POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
        sent += b"Connection: close\r\n\r\n"
        for start in range(0, size, 10_000):
            chunk = body[start : start + 10_000]
            sent += b"%x;ext=1\r\n%s\r\n" % (len(chunk), chunk)
        sent += b"0\r\nTrailer: 1\r\n\r\n"
    else:
        sent = post("/echo", body, "Connection: close")
    with patient.connect() as client:
        for start in (0, 10, 70, 100):
            client.sendall(sent[start : {0: 10, 10: 70, 70: 100, 100: None}[start]])
            time.sleep(0.002)
        answer = rest(client)
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert answer.partition(b"\r\n\r\n")[2] == body


def test_a_client_that_waits_for_100_continue_gets_it_if_the_headers_are_accepted(
    patient: Served,
) -> None:
    awaits = post("/echo", b"", "Expect: 100-continue", "Connection: close")
    awaits = awaits.replace(b"Content-Length: 0", b"Content-Length: 3")
    with patient.connect() as client:
        client.sendall(awaits)
        assert client.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(b"abc")
        assert rest(client).endswith(b"\r\n\r\nabc")
    refused = awaits.replace(b"Host:", b"X-Refused: 1\r\nHost:")
    assert patient.exchange(refused).startswith(b"HTTP/1.1 401 ")


@pytest.mark.parametrize(
    ("request_line", "headers", "status"),
    [
        ("POST /echo", "X-Refused: 1", 401),
        ("POST /missing", "", 404),
        ("POST /healthz", "", 405),
        ("POST /echo", "", 413),
    ],
)
def test_a_refused_body_is_not_waited_for(
    patient: Served, request_line: str, headers: str, status: int
) -> None:
    size = 90_000_000 if status != 413 else LARGEST + 1
    head = f"{request_line} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {size}\r\n{headers}\r\n"
    block, sent = bytes(1 << 16), 0
    with patient.connect() as client:
        client.sendall((head if headers else head[:-2]).encode() + b"\r\n")
        client.settimeout(0.05)
        before = time.monotonic()
        try:
            while sent < 90_000_000:
                sent += client.send(block)
        except OSError:
            pass  # closed by the server
        assert time.monotonic() - before < 3
        assert sent < 20_000_000
        client.settimeout(5)
        assert f" {status} ".encode() in rest(client)[:16]


def test_a_body_of_chunks_that_is_too_large_is_refused_at_the_limit(patient: Served) -> None:
    head = b"POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunk = b"%x\r\n%s\r\n" % (60_000, bytes(60_000))
    answer = patient.exchange(head + chunk * 17)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"\r\nConnection: close\r\n" in answer


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: a\r\nbroken\r\n\r\n", 400),
        (b"\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\nHost: a/b@c\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.0\r\n\r\n", 200),
        (b"GET /healthz HTTP/1.1\r\nHost: [::1]:80\r\nConnection: close\r\n\r\n", 200),
        (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        (b"GET /?" + b"q" * 140_000, 414),
        (b"GET /?q HTTP/1.1\r\nHost: a\r\nX: " + b"q" * 140_000, 431),
    ],
)
def test_what_is_no_sound_request_is_refused_and_the_connection_ends(
    patient: Served, sent: bytes, status: int
) -> None:
    assert f" {status} ".encode() in patient.exchange(sent)[:16]


@pytest.mark.parametrize(
    ("sent", "status", "detail"),
    [
        (b"GET /?" + b"q" * 200_000 + b" HTTP/1.1", 414, "its first line has over 4,094 bytes"),
        (b"GET /?" + b"q" * 5_000 + b" HTTP/1.1", 414, "its first line has over 4,094 bytes"),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 8_190, 431, "a header has over 8,190 bytes"),
        (b"GET / HTTP/1.1" + b"\r\nX: x" * 3_000, 431, "it has over 100 headers"),
        (
            b"GET / HTTP/1.1" + (b"\r\nX: " + b"x" * 4_000) * 40,
            431,
            "its first line and headers have over 131,072 bytes",
        ),
        (
            b"GET / HTTP/1.1\r\nHost: a",
            400,
            "its header Host is there twice, wrong, or beside one that excludes it",
        ),
        (
            b"GET / HTTP/1.1" + b"\r\nContent-Length: 1" * 2,
            400,
            f"its header Content-Length {WRONG}",
        ),
        (b"GET / HTTP/1.1\r\nX-Key: a\0", 400, "a header is no NAME: VALUE"),
        (b"GET / HTTP/1.1\r\nsk-Secret", 400, "a header is no NAME: VALUE"),
        (b"GET / HTTP/1.1\r\nX Y: z", 400, "a header is no NAME: VALUE"),
        (b"GET / HTTP/1.1\r\nA: b\r\n c", 400, "a header is no NAME: VALUE"),
        (b"GET / HTTP/1.1\r\nExpect: x", 400, "its Expect is not 100-continue"),
        (b"GET / HTTP/9.1", 400, "its first line is no METHOD PATH HTTP/1.1"),
        (b"get / HTTP/1.1", 400, "its first line is no METHOD PATH HTTP/1.1"),
        (
            b"GET / HTTP/1.1\r\nTransfer-Encoding: zip",
            400,
            "its Transfer-Encoding is not chunked",
        ),
    ],
)
def test_what_is_wrong_or_too_long_in_a_request_is_named(
    patient: Served, sent: bytes, status: int, detail: str
) -> None:
    answer = patient.exchange(sent + b"\r\nHost: localhost\r\n\r\n")
    assert f" {status} ".encode() in answer[:16]
    body = json.loads(answer.partition(b"\r\n\r\n")[2])
    kind = "not sound HTTP" if status == 400 else "too long"
    assert body["detail"] == f"the request is {kind}: {detail}"


def test_a_body_in_another_coding_than_chunks_is_refused(patient: Served) -> None:
    head = b"POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"
    answer = patient.exchange(head + b"1\r\nx\r\n0\r\n\r\n")
    assert b" 400 " in answer[:16]
    assert b"a Transfer-Encoding that is not chunked alone" in answer


def test_slow_headers_slow_bodies_and_slow_readers_stop_nobody(patient: Served) -> None:
    """The four modes of slowhttptest, each with more connections than the server has threads."""
    slow_body = post("/echo", b"x", "X: 1").replace(b"Content-Length: 1", b"Content-Length: 900000")
    large = b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n"
    ranges = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nRange: bytes=0-,"
    with ExitStack() as clients:
        for start, buffer, count in (
            (HEALTH[:30], 0, 100),
            (slow_body, 0, 100),
            (large, SMALL, 4),
            (ranges, 0, 100),
        ):
            for _ in range(count):
                client = clients.enter_context(patient.connect(receive_buffer=buffer))
                client.sendall(start)
            assert is_healthy(patient)
        assert all(is_healthy(patient) for _ in range(20))


def test_more_connections_than_there_may_be_close_the_slowest(patient: Served) -> None:
    with ExitStack() as clients:
        slow = [clients.enter_context(patient.connect()) for _ in range(700)]
        assert is_healthy(patient)
        slow[0].settimeout(1)
        assert slow[0].recv(1) == b"", "the oldest one"
        assert patient.worker.nr_conns < 600


@pytest.mark.parametrize(
    "start",
    [b"GET /healthz HT", HEALTH[:-2], post("/echo", b"").replace(b": 0\r", b": 9\r") + b"12"],
)
def test_a_request_that_does_not_arrive_in_time_is_answered_408(
    hasty: Served, start: bytes
) -> None:
    before = time.monotonic()
    assert hasty.exchange(start).startswith(b"HTTP/1.1 408 ")
    assert 0.25 < time.monotonic() - before < 3


def test_headers_have_one_deadline_however_many_bytes_come(hasty: Served) -> None:
    with hasty.connect() as client:
        before = time.monotonic()
        client.sendall(b"GET /healthz HTTP/1.1\r\n")
        with suppress(OSError):
            while time.monotonic() - before < 5:
                client.sendall(b"X: 1\r\n")
                time.sleep(0.02)
    assert time.monotonic() - before < 3


def test_a_body_has_a_least_rate_and_a_steady_one_may_take_long(hasty: Served) -> None:
    def send(bytes_per_second: int) -> bytes:
        with hasty.connect() as client:
            client.sendall(post("/echo", bytes(30_000), "Connection: close")[:-30_000])
            for _ in range(0, 30_000, bytes_per_second // 50):
                try:
                    client.sendall(bytes(bytes_per_second // 50))
                except OSError:
                    break
                time.sleep(0.02)
            return rest(client)

    assert send(50_000).startswith(b"HTTP/1.1 200 ")
    assert not send(2_500).startswith(b"HTTP/1.1 200 ")


def test_an_idle_connection_is_closed(hasty: Served) -> None:
    with hasty.connect() as client:
        client.sendall(HEALTH.replace(b"close", b"keep-alive"))
        before = time.monotonic()
        assert rest(client).endswith(b"ok")
        assert 0.9 < time.monotonic() - before < 4


def test_a_reader_that_stops_ends_its_response_and_a_slow_one_gets_all(hasty: Served) -> None:
    with hasty.connect(receive_buffer=SMALL) as stopped:
        stopped.sendall(b"GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert hasty.worker.wsgi.extensions["broken_off"].wait(10)
    with hasty.connect() as slow:
        slow.sendall(b"GET /large HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        size = 0
        while block := slow.recv(1 << 19):
            size += len(block)
            time.sleep(0.01)
        assert size > 1 << 24


def test_a_client_that_goes_away_leaves_nothing(patient: Served) -> None:
    for sent in (b"", HEALTH[:10], post("/echo", b"x").replace(b": 1\r", b": 9\r"), HEALTH):
        with patient.connect() as client:
            client.sendall(sent)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    deadline = time.monotonic() + 10
    while patient.worker._connections and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not patient.worker._connections
    assert (
        patient.worker.nr_conns
        == patient.worker._stored
        == patient.worker._pools.requests.count
        == 0
    )


def test_a_refusal_by_the_headers_alone_is_recorded_and_a_fault_is_not_quoted(
    patient: Served, caplog: pytest.LogCaptureFixture
) -> None:
    ended = patient.worker.wsgi.extensions["ended"]
    before = ended.count(401)
    head = b"POST /echo HTTP/1.1\r\n" + HOST + b"X-Refused: 1\r\nContent-Length: 70000\r\n\r\n"
    assert patient.exchange(head).startswith(b"HTTP/1.1 401 ")
    assert ended.count(401) == before + 1
    answer = patient.exchange(b"GET /?q=secret\xeb HTTP/1.1\r\n" + HOST + b"\r\n")
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"secret" not in answer
    assert "secret" not in caplog.text


def test_a_small_body_is_received_before_a_thread_sees_the_request(patient: Served) -> None:
    ended = patient.worker.wsgi.extensions["ended"]
    before = ended.count(401)
    with patient.connect() as client:
        client.sendall(post("/echo", b"xy", "X-Refused: 1", "Connection: close")[:-2])
        assert is_healthy(patient)
        assert ended.count(401) == before
        client.sendall(b"xy")
        assert rest(client).startswith(b"HTTP/1.1 401 ")
    assert ended.count(401) == before + 1


def test_uploads_take_no_thread_from_others_and_few_wait_for_theirs(patient: Served) -> None:
    room = patient.worker.wsgi.extensions["room"]
    upload = post("/documents", b"{}", "Connection: close")
    with ExitStack() as stack:
        waiting = []
        for _ in range(MOST_UPLOADS):
            client = stack.enter_context(patient.connect())
            client.sendall(upload)
            waiting.append(client)
        deadline = time.monotonic() + 10
        while patient.worker._pools.uploads.count < MOST_UPLOADS and time.monotonic() < deadline:
            time.sleep(0.01)
        refused = patient.exchange(upload)
        assert refused.startswith(b"HTTP/1.1 429 ")
        assert b"\r\nRetry-After: " in refused
        assert patient.exchange(post("/echo", b"x", "Connection: close")).endswith(b"\r\n\r\nx")
        room.set()
        assert all(rest(client).endswith(b"taken") for client in waiting)
    assert patient.worker._pools.uploads.count == 0


def test_uploads_pause_while_many_documents_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    app = Flask("crowded")
    assert pause(app, 0.01, threads=4) == 0.0
    backlog = SimpleNamespace(is_long=True)
    app.extensions[EXTENSION] = SimpleNamespace(backlog=backlog)
    busy = 0.01
    of_a_thread = busy / (busy + pause(app, busy, threads=4))
    assert 4 * of_a_thread == pytest.approx(UPLOAD_SHARE * 2)
    assert pause(app, 60.0, threads=4) == LONGEST_PAUSE
    backlog.is_long = False
    assert pause(app, busy, threads=4) == 0.0
