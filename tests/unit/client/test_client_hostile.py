"""The Python client beside a broken or hostile server: each call ends, by a typed error."""

import gzip
import io
import json
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import anyio
import httpx
import pytest
from client_parts import BATCH, NODE, SUBMITTED, client_of, problem, stream
from loopback import LoopbackServer

from callslip.client import (
    NO_RETRIES,
    AsyncClient,
    Client,
    FolderProgress,
    events,
    line_reader,
    responses,
    retries,
)
from callslip.client.line_reader import LineReader
from callslip.client.retries import Pauses
from callslip.errors import BacklogFull, Overloaded, PermanentError, ServerDown

ODD = "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg"
"""Where str.splitlines ends lines, and nothing else does."""


def read(data: bytes, size: int) -> list[str]:
    reader = LineReader()
    parts = [data[at : at + size] for at in range(0, len(data), size)]
    return [line for part in [*parts, b""] for line in reader.read(part)] + list(reader.rest())


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1000])
def test_lines_end_at_the_ends_of_lines_alone(size: int) -> None:
    text = f"\ufeff{ODD}\n\r\n\n한\r\ndata: é\r\r\ufefflast \u2028"
    expected = [ODD, "", "", "한", "data: é", "", "\ufefflast \u2028"]
    assert read(text.encode(), size) == expected
    assert read(b"\xff\n", size) == ["\ufffd"]
    assert read(b"", size) == []


def test_a_line_ends_with_its_return_and_is_not_waited_for() -> None:
    reader = LineReader()
    assert list(reader.read(b"a\r")) == ["a"]
    assert list(reader.read(b"\nb\n")) == ["b"]


def test_streams_hold_every_character() -> None:
    node = json.dumps(json.loads(NODE) | {"facts": {"said": ODD}}, ensure_ascii=False)
    node = node.replace("\\u000b", "\x0b").replace("\\f", "\x0c")
    client, _ = client_of(stream(f"event: node\ndata: {node}\n\n"))
    assert "\u2028" in next(client.request_events("GET", "/v1/events")).data
    client, _ = client_of(httpx.Response(200, content=f'{{"a": "{ODD}"}}\n{{}}'.encode()))
    assert list(client.request_lines("/v1/lines")) == [f'{{"a": "{ODD}"}}', "{}"]


def test_a_line_without_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_reader, "LARGEST_LINE", 1000)

    def endless(_: httpx.Request) -> httpx.Response:
        def parts() -> Iterator[bytes]:
            while True:
                yield b"x" * 100

        return httpx.Response(200, content=parts())

    client, sent_request = client_of(endless)
    with pytest.raises(PermanentError, match="longer than 1000 bytes"):
        list(client.request_lines("/v1/lines"))
    with pytest.raises(PermanentError, match="longer than 1000 bytes"):
        list(client.request_events("GET", "/v1/events"))
    assert len(sent_request) == 2


class Large(io.BytesIO):
    """Takes its time."""

    def read(self, size: int | None = -1) -> bytes:
        time.sleep(0.1)
        return super().read(size)


class Dripping(BaseHTTPRequestHandler):
    """Begins an answer, or says that it goes on, for ever; takes what it is sent."""

    def do_GET(self) -> None:
        goes_on = self.path == "/healthz"
        self.wfile.write(b"" if goes_on else b"HTTP/1.1 200 OK\r\n")
        while not self.server.ending.wait(0.05):  # type: ignore[attr-defined]
            self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n" if goes_on else b"X-More: 1\r\n")

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        answer = json.dumps(SUBMITTED).encode()
        self.send_response(202)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.mark.parametrize("backend", ["asyncio"])
def test_what_is_awaited_has_a_time_as_a_whole_and_what_is_sent_takes_its_own(backend: str) -> None:
    async def use(url: str) -> None:
        async with AsyncClient(url, timeout=0.4, retries=NO_RETRIES) as client:
            for call in (client.healthz, client.list_webhooks):
                with (
                    anyio.fail_after(2),
                    pytest.raises(ServerDown, match=r"whole answer .* 0\.4 s"),
                ):
                    await call()
            with anyio.fail_after(2), pytest.raises(ServerDown):
                [each async for each in client.request_lines("/v1/lines")]
            started = time.monotonic()
            assert await client.upload("main", Large(b"x" * 400_000), filename="a.txt")
            assert time.monotonic() - started > 0.5

    with LoopbackServer(Dripping) as server:
        anyio.run(use, f"http://127.0.0.1:{server.server_port}", backend=backend)


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What would be waited."""
    found: list[float] = []
    monkeypatch.setattr(time, "sleep", found.append)
    return found


@pytest.mark.parametrize(
    ("retry", "expected"),
    [
        ("retry: 0", [0.5, 1, 2, 4, 8, 16, 30, 30, 30]),
        ("retry: 999999999999", [30.0] * 9),
    ],
)
def test_streams_that_end_at_once_are_not_followed_for_ever(
    retry: str, expected: list[float], waits: list[float]
) -> None:
    client, sent_request = client_of(stream(f"{retry}\n\n"))
    with pytest.raises(ServerDown, match="10 streams in a row ended at once"):
        list(client.follow("d"))
    assert (len(sent_request), waits) == (10, expected)


def test_a_stream_that_told_something_or_lasted_is_not_empty() -> None:
    pauses = Pauses()
    for _ in range(20):
        assert pauses.after(2, had_events=True, lasted=0) == 2
        assert pauses.after(2, had_events=False, lasted=600) == 2
        assert pauses.after(2, had_events=False, lasted=0) == 2
        assert pauses.after(2, had_events=False, lasted=0) == 4


def test_a_file_waits_for_its_place_within_bounds(waits: list[float], tmp_path: Path) -> None:
    answers = [problem(BacklogFull, **{"Retry-After": reply}) for reply in ("1e9", "0", "-3", "7")]

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/v1/batches":
            return httpx.Response(200, json=BATCH)
        return answers.pop(0) if answers else httpx.Response(202, json=SUBMITTED)

    (tmp_path / "a.txt").write_text("a")
    client, _ = client_of(answer, retries=NO_RETRIES)
    output: list[FolderProgress] = []
    client.upload_folder("main", tmp_path, on_progress=output.append)
    assert waits == [each.waiting_seconds for each in output if each.waiting_seconds]
    assert waits == [retries.LONGEST_BACKLOG, 0.5, 0.5, 7]


class Pinging(BaseHTTPRequestHandler):
    """Says for ever that it is still there."""

    def do_POST(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(f"event: node\ndata: {NODE}\n\n".encode())
        while not self.server.ending.wait(0.05):  # type: ignore[attr-defined]
            self.wfile.write(b": still there\n\n")

    def log_message(self, *_: object) -> None:
        """Nothing."""


def test_an_answer_that_never_comes_ends_and_what_is_done_between_is_not_counted() -> None:
    with LoopbackServer(Pinging) as server:
        url = f"http://127.0.0.1:{server.server_port}"
        with Client(url, retries=NO_RETRIES) as client:
            events = client.answer_stream("main", "leave?", timeout=0.3)
            next(events)
            time.sleep(0.5)
            started = time.monotonic()
            with pytest.raises(ServerDown, match=r"no whole answer from .* in 0\.3 s"):
                next(events)
            assert 0.2 < time.monotonic() - started < 2


def test_an_answer_that_is_too_large_is_not_read_to_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(responses, "LARGEST_BODY", 1_000_000)
    read: list[int] = []

    def endless(data: bytes, **headers: str) -> httpx.Response:
        def parts() -> Iterator[bytes]:
            for at in range(0, len(data), 1000):
                read.append(at)
                yield data[at : at + 1000]

        return httpx.Response(200, content=parts(), headers=headers)

    bomb = gzip.compress(b" " * 100_000_000)
    for data, headers in ((b" " * 2_000_000, {}), (bomb, {"Content-Encoding": "gzip"})):
        read.clear()
        client, sent_request = client_of(lambda _, d=data, h=headers: endless(d, **h))  # type: ignore[misc]
        with pytest.raises(PermanentError, match="larger than 1000000 bytes"):
            client.healthz()
        assert len(sent_request) == 1
        assert read[-1] < 0.6 * len(data)


def test_an_event_without_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "LARGEST_EVENT", 1000)
    for line in ("data: more\n", "data\n"):
        client, _ = client_of(stream(line * 1001))
        with pytest.raises(PermanentError, match="event is longer than 1000"):
            list(client.request_events("GET", "/v1/events"))
    client, _ = client_of(stream(f"data: {'x' * 900}\n\n" * 3))
    assert len(list(client.request_events("GET", "/v1/events"))) == 3


DEEP = "[" * 100_000


def test_json_that_is_nested_too_deep_is_no_json() -> None:
    client, _ = client_of(httpx.Response(200, text=DEEP))
    for call in (client.healthz, lambda: list(client.export_memory("main"))):
        with pytest.raises(PermanentError, match="no JSON"):
            call()
    client, _ = client_of(httpx.Response(500, text=DEEP))
    with pytest.raises(PermanentError, match="answered 500"):
        client.healthz()
    for kind, output in (("node", "holds no JSON"), ("error", "holds no JSON")):
        client, _ = client_of(stream(f"event: {kind}\ndata: {DEEP}\n\n"))
        with pytest.raises(PermanentError, match=output):
            list(client.answer_stream("main", "leave?"))


@pytest.mark.parametrize(
    "reply",
    [
        "Fri, 31 Dec 99999 23:59:59 GMT",
        "Fri, 31 Dec 9999 23:59:59 -9999",
        "Fri, 31 Dec 9999 23:59:59 +99999999999999999999",
        "Mon, 01 Jan 0001 00:00:00 +2359",
        "Fri, 99999999999999999999 Dec 2020 00:00:00 GMT",
        "1e999",
        "9" * 5000,
        ",",
    ],
)
def test_a_wait_that_cannot_be_read_is_none(reply: str) -> None:
    client, _ = client_of(problem(Overloaded, **{"Retry-After": reply}), retries=NO_RETRIES)
    with pytest.raises(Overloaded) as raised:
        client.healthz()
    assert 0 <= raised.value.retry_after < 1e12


@pytest.mark.parametrize("reply", ["9" * 400, "9" * 5000])
def test_a_pause_that_no_number_holds_is_the_longest(reply: str, waits: list[float]) -> None:
    client, _ = client_of(stream(f"retry: {reply}\n\n"), httpx.Response(204))
    assert list(client.follow("d")) == []
    assert waits == [30]


@pytest.mark.parametrize("reply", ["\x07", "한", "a\x00b", "7 ", "\t7", "7" * 2000])
def test_an_id_that_no_header_can_carry_is_none(reply: str, waits: list[float]) -> None:
    ended = "event: end\ndata: {}\n\n"
    client, sent_request = client_of(
        stream(f"id: 6\ndata: a\n\nid: {reply}\ndata: b\n\n"), stream(ended)
    )
    assert [event.data for event in client.resumed_events("/v1/e", None)] == ["a", "b", "{}"]
    assert sent_request[1].headers["Last-Event-ID"] == "6"
    assert waits


def test_a_closed_client_says_so() -> None:
    client, sent_request = client_of(httpx.Response(200, json={}))
    client.close()
    for call in (client.healthz, lambda: list(client.follow("d"))):
        with pytest.raises(PermanentError, match="client is closed"):
            call()
    assert sent_request == []
