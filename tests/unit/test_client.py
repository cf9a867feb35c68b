"""The Python client: what it sends, when it sends it again, and what it makes of answers."""

import io
import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from loopback import LoopbackServer

from callslip.client import (
    NO_RETRIES,
    AsyncClient,
    Client,
    FolderProgress,
    Retries,
    Sent,
    models,
)
from callslip.errors import (
    BacklogFull,
    BadReply,
    BrokenFile,
    CallslipError,
    CollectionNotFound,
    DeskDown,
    InvalidRequest,
    ModelBudgetSpent,
    Overloaded,
    PermanentError,
    SearchTimeout,
    StoreDown,
)

SOON = Retries(first_wait=0.001, longest_wait=0.002)

HIT = {
    "rank": 1,
    "score": 0.5,
    "chunk_id": "c",
    "document_id": "d",
    "title": "Leave",
    "filename": "leave.md",
    "section": "1",
    "heading": "Leave",
    "text": "Fourteen months.",
    "span": {"start": 0, "end": 16},
    "lang": "en",
    "properties": {},
    "legs": {"vector": None, "keyword": {"rank": 1, "score": 2.0}},
    "level": 2,
    "parent_id": None,
    "parent_of": None,
    "vector": None,
}
FOUND = {
    "trace_id": "t",
    "collection": "main",
    "query": "leave",
    "hits": [HIT],
    "alpha": 0.4,
    "fusion": "calibrated",
    "as_of": {"at": None, "source": "default", "words": None},
    "cut": False,
    "candidates": 1,
    "partial": False,
    "left_out": {},
    "timings": {},
}
SUBMITTED = {
    "outcome": "accepted",
    "document_id": "d",
    "version": 1,
    "task_id": "d.1",
    "status_url": "/v1/documents/d",
    "task_url": "/v1/tasks/d.1",
}
BATCH = {
    "batch_id": "b",
    "created_at": 0.0,
    "started_at": None,
    "expected": 1,
    "submitted": 1,
    "unchanged": 0,
    "states": {},
    "left": 0,
    "seconds": None,
    "documents_per_minute": None,
    "chunks_per_minute": None,
    "seconds_left": None,
    "failures": [],
}

Answering = Callable[[httpx.Request], httpx.Response]


def desk(
    *answers: httpx.Response | Exception | Answering, **given: Any
) -> tuple[Client, list[Any]]:
    """A client of a desk that answers so, one after the other, the last again and again."""
    asked: list[httpx.Request] = []

    def handle(request: httpx.Request) -> httpx.Response:
        request.read()
        asked.append(request)
        answer = answers[min(len(asked), len(answers)) - 1]
        if isinstance(answer, Exception):
            raise answer
        if callable(answer):
            return answer(request)
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)

    http = httpx.Client(transport=httpx.MockTransport(handle))
    return Client("http://desk", http=http, **{"retries": SOON} | given), asked


def problem(error: type[CallslipError], **headers: str) -> httpx.Response:
    told = {
        "type": f"urn:callslip:problem:{error.slug}",
        "title": "Title",
        "status": error.status,
        "detail": "what is wrong",
        "advice": "what to do",
    }
    return httpx.Response(error.status, json=told, headers=headers)


def found(**more: Any) -> httpx.Response:
    return httpx.Response(200, json=FOUND | more)


def test_an_answer_is_typed_and_what_a_newer_desk_adds_is_kept() -> None:
    newer = found(fusion="quantum", colour="blue", hits=[HIT | {"mood": 1}])
    client, asked = desk(newer)
    answer = client.search("main", "leave", top=1, having_all={"year >=": 2024})
    assert answer.hits[0].legs.keyword is not None
    assert answer.hits[0].legs.keyword.rank == 1
    assert (answer.fusion, answer.colour, answer.hits[0].mood) == ("quantum", "blue", 1)
    sent = {"collection": "main", "query": "leave", "top": 1, "having_all": {"year >=": 2024}}
    assert json.loads(asked[0].content) == sent
    assert asked[0].headers["User-Agent"]


@pytest.mark.parametrize(
    "error", [CollectionNotFound, BadReply, InvalidRequest, DeskDown, SearchTimeout, StoreDown]
)
def test_a_problem_is_the_error_of_its_class(error: type[CallslipError]) -> None:
    client, _ = desk(problem(error, **{"Retry-After": "7"}), retries=NO_RETRIES)
    with pytest.raises(error) as raised:
        client.search("main", "leave")
    assert (raised.value.detail, raised.value.advice) == ("what is wrong", "what to do")
    assert raised.value.retry_after == 7


@pytest.mark.parametrize(
    ("status", "kind"),
    [(502, DeskDown), (503, DeskDown), (504, DeskDown), (429, Overloaded)],
)
def test_what_stands_before_the_desk_answers_without_a_problem(
    status: int, kind: type[CallslipError]
) -> None:
    page = httpx.Response(status, html="<h1>nginx</h1>", headers={"Retry-After": "0"})
    client, asked = desk(page, found())
    assert client.search("main", "leave").hits
    assert len(asked) == 2
    client, _ = desk(httpx.Response(status, json=["no problem"]), retries=NO_RETRIES)
    with pytest.raises(kind, match=f"http://desk/v1/search answered {status}"):
        client.search("main", "leave")


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(302, headers={"Location": "http://elsewhere"}),
        httpx.Response(404, text="no such page"),
        httpx.Response(500, json={"type": 7, "detail": None, "advice": None}),
        httpx.Response(200, html="<p>a page of a proxy</p>"),
        httpx.Response(200, json={"hits": "none"}),
        httpx.Response(200, json=None),
    ],
)
def test_an_answer_that_is_none_of_a_desk_says_so_and_is_not_asked_for_again(
    answer: httpx.Response,
) -> None:
    client, asked = desk(answer)
    with pytest.raises(PermanentError) as raised:
        client.search("main", "leave")
    assert raised.value.advice
    assert len(asked) == 1


LOST = [
    httpx.ReadTimeout("late"),
    httpx.RemoteProtocolError("broke off"),
    httpx.ConnectError("refused"),
]


@pytest.mark.parametrize("lost", LOST)
def test_what_is_harmless_twice_is_sent_again(lost: Exception) -> None:
    client, asked = desk(lost, lost, problem(StoreDown, **{"Retry-After": "0.01"}), found())
    assert client.search("main", "leave").hits
    assert len(asked) == 4


def test_a_wait_is_never_shorter_than_the_desk_says_and_none_is_begun_that_is_too_long() -> None:
    client, asked = desk(problem(BacklogFull, **{"Retry-After": "0.2"}), found())
    started = time.monotonic()
    client.search("main", "leave")
    assert 0.2 <= time.monotonic() - started < 1
    late = problem(ModelBudgetSpent, **{"Retry-After": "40000"})
    client, asked = desk(late)
    with pytest.raises(ModelBudgetSpent) as raised:
        client.answer("main", "leave?")
    assert raised.value.retry_after == 40000
    assert len(asked) == 1


def test_a_date_says_when_to_come_back_too() -> None:
    date = "Fri, 31 Dec 2999 23:59:59 GMT"
    for header, least in ((date, 1e9), ("soon", 2.0), ("-5", 0.0), ("nan", 0.0), ("inf", 0.0)):
        client, _ = desk(problem(Overloaded, **{"Retry-After": header}), retries=NO_RETRIES)
        with pytest.raises(Overloaded) as raised:
            client.search("main", "leave")
        assert raised.value.retry_after >= least
        assert raised.value.retry_after < 1e11


def test_it_gives_up_after_so_many_tries() -> None:
    client, asked = desk(LOST[0])
    with pytest.raises(DeskDown, match="no answer from http://desk: ReadTimeout"):
        client.search("main", "leave")
    assert len(asked) == 1 + SOON.most


UNSAFE: list[Callable[[Client], object]] = [
    lambda client: client.answer("main", "leave?"),
    lambda client: next(client.answer_stream("main", "leave?")),
    lambda client: client.create_webhook("http://hook"),
    lambda client: client.roll_back("d", 1),
    lambda client: client.reset_memory("main"),
    lambda client: client.retry_dead_letters(all=True),
    lambda client: client.rebuild_facets("main"),
    lambda client: client.upload("main", Pipe(b"text"), filename="a.txt"),
]


class Pipe(io.BytesIO):
    def seekable(self) -> bool:
        return False


@pytest.mark.parametrize("call", UNSAFE)
def test_what_may_have_been_done_is_not_done_twice(call: Callable[[Client], object]) -> None:
    client, asked = desk(LOST[0])
    with pytest.raises(DeskDown):
        call(client)
    client, again = desk(problem(StoreDown))
    with pytest.raises(StoreDown):
        call(client)
    assert (len(asked), len(again)) == (1, 1)


def test_what_did_no_work_is_sent_again_whatever_it_is() -> None:
    busy = problem(Overloaded, **{"Retry-After": "0"})
    made = {"webhook_id": "w", "url": "u", "collection": None, "events": []}
    answer = httpx.Response(201, json=made | {"created_at": 1, "stopped_at": None, "secret": "s"})
    client, asked = desk(LOST[2], busy, answer)
    assert client.create_webhook("http://hook").secret == "s"
    assert len(asked) == 3


def test_the_key_is_sent_and_never_shown() -> None:
    client, asked = desk(found(), key=" sesame-0123\n")
    client.search("main", "leave")
    client.with_key(None).search("main", "leave")
    sent = [request.headers.get("Authorization") for request in asked]
    assert sent == ["Bearer sesame-0123", None]
    assert "sesame" not in repr(client._place)
    for key in ("sesame\nX-Evil: 1", "sesame-열쇠"):
        with pytest.raises(InvalidRequest) as raised:
            Client(key=key)
        assert "sesame" not in str(raised.value)


def test_without_an_address_it_is_that_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CALLSLIP_API__URL", raising=False)
    monkeypatch.setenv("CALLSLIP_API__KEY", "sesame")
    assert Client().url == "http://127.0.0.1:8765"
    monkeypatch.setenv("CALLSLIP_API__URL", "https://desk.example/")
    assert Client()._place.key == "sesame"
    assert Client().url == "https://desk.example"
    assert Client("http://other")._place.key is None  # that desk's key is no other's business


@pytest.mark.parametrize("url", ["", "desk", "ftp://desk", "http://", "http://[", 7, "http:desk"])
def test_what_is_no_address_is_refused(url: Any) -> None:
    with pytest.raises(InvalidRequest, match="no address"):
        Client(url)


@pytest.mark.parametrize("name", ["", ".", "..", None, 7, "\ud800"])
def test_names_that_lead_elsewhere_are_refused_before_anything_is_sent(name: Any) -> None:
    client, asked = desk(found())
    for call in (client.delete_collection, client.get_document, client.show_ranking):
        with pytest.raises(InvalidRequest):
            call(name)
    with pytest.raises(InvalidRequest):
        client.get_conversation("main", name)
    assert asked == []


def test_a_path_of_ones_own_stays_at_the_desk() -> None:
    client, asked = desk(httpx.Response(200, json={"new": 1}), key="sesame")
    assert client.request_json("POST", "/v1/new", json={}, params={"a": "b c"}) == {"new": 1}
    assert str(asked[0].url) == "http://desk/v1/new?a=b+c"
    for path in (".evil.example/v1", "@evil.example/v1", "", "/v1/../metrics", "/v1/\n"):
        with pytest.raises(InvalidRequest):
            client.request_json("GET", path)
    assert len(asked) == 1


def test_a_name_is_one_part_of_the_path() -> None:
    client, asked = desk(problem(CollectionNotFound))
    with pytest.raises(CollectionNotFound):
        client.delete_tenant("main", "a/b ?#%/../c")
    assert asked[0].url.raw_path == b"/v1/collections/main/tenants/a%2Fb%20%3F%23%25%2F..%2Fc"


@pytest.mark.parametrize(
    "given",
    [
        {"query": "\ud800"},
        {"query": "x", "horizon": float("nan")},
        {"query": "x", "having_all": {"a": object()}},
        {"query": "x", "having_all": {"a": {1, 2}}},
    ],
)
def test_what_json_cannot_say_is_refused(given: dict[str, Any]) -> None:
    client, asked = desk(found())
    with pytest.raises(InvalidRequest):
        client.search("main", **given)
    with pytest.raises(InvalidRequest):
        client.upload("main", b"x", filename="a", properties={"a": object()})
    assert asked == []


def test_a_file_is_sent_part_by_part_and_tells_how_far_it_is(tmp_path: Path) -> None:
    path = tmp_path / "설명서.bin"
    path.write_bytes(b"x" * 300_000)
    told: list[Sent] = []
    client, asked = desk(LOST[0], httpx.Response(202, json=SUBMITTED))
    made = client.upload(
        "main", path, title="Manual", properties={"year": 2024}, on_progress=told.append
    )
    assert made.document_id == "d"
    assert len(asked) == 2
    assert asked[0].content.count(b"x" * 300_000) == asked[1].content.count(b"x" * 300_000) == 1
    assert b'{"year": 2024}' in asked[1].content
    assert "설명서.bin".encode() in asked[1].content
    half = len(told) // 2
    assert half > 3
    assert told[:half] == told[half:]
    assert [part.bytes_sent for part in told[:half]] == sorted({p.bytes_sent for p in told})
    assert told[-1] == Sent("설명서.bin", 300_000, 300_000)


def test_a_stream_without_end_is_sent_in_chunks() -> None:
    client, asked = desk(httpx.Response(202, json=SUBMITTED))
    told: list[Sent] = []
    client.upload("main", Pipe(b"text"), filename="a.txt", on_progress=told.append)
    assert asked[0].headers["Transfer-Encoding"] == "chunked"
    assert told == [Sent("a.txt", 4, None)]


@pytest.mark.parametrize(
    ("content", "names"),
    [
        (b"text", {}),
        (io.BytesIO(b"text"), {}),
        (io.StringIO("text"), {"filename": "a.txt"}),
        (None, {}),
        (7, {"filename": "a.txt"}),
    ],
)
def test_what_is_no_file_is_refused(content: Any, names: dict[str, str]) -> None:
    client, asked = desk(httpx.Response(202, json=SUBMITTED))
    with pytest.raises(InvalidRequest) as raised:
        client.upload("main", content, **names)
    assert raised.value.advice
    assert asked == []


def test_a_file_that_cannot_be_read_says_which(tmp_path: Path) -> None:
    client, _ = desk(httpx.Response(202, json=SUBMITTED))
    with pytest.raises(PermanentError, match=r"none\.txt"):
        client.upload("main", tmp_path / "none.txt")
    with pytest.raises(PermanentError, match="directory"):
        client.upload("main", str(tmp_path))


def test_a_folder_waits_while_the_desk_takes_no_more_and_goes_on_past_what_is_refused(
    tmp_path: Path,
) -> None:
    for name in ("a.txt", "below/b.txt", "c.bin", ".hidden/x.txt", "d.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    full = [3]
    expected: list[int] = []

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/v1/batches":
            expected.append(json.loads(request.content)["expected"])
            return httpx.Response(200, json=BATCH)
        if b'filename="c.bin"' in request.content:
            return problem(BrokenFile)
        if b"below/b.txt" in request.content and full[0]:
            full[0] -= 1
            return problem(BacklogFull, **{"Retry-After": "0.01"})
        return httpx.Response(202, json=SUBMITTED)

    client, _ = desk(answer, retries=NO_RETRIES)
    told: list[FolderProgress] = []
    sent = client.upload_folder("main", tmp_path, on_progress=told.append)
    assert len(sent.submitted) == 3
    assert [(each.name, type(each.error)) for each in sent.refused] == [("c.bin", BrokenFile)]
    assert expected == [4, 3]
    assert [(t.done, t.name) for t in told if t.waiting_seconds] == [(1, "below/b.txt")] * 3
    assert told[-1] == FolderProgress(4, 4, "d.txt")
    with pytest.raises(InvalidRequest, match="no file that fits"):
        client.upload_folder("main", tmp_path, pattern="*.pdf")
    with pytest.raises(InvalidRequest, match=r"known as 'a\.txt'"):
        client.upload_folder("main", [tmp_path / "a.txt", tmp_path / "below" / ".." / "a.txt"])


def document(state: str, **more: Any) -> httpx.Response:
    told = {
        **{"document_id": "d", "collection": "main", "tenant": "", "name": "a.txt"},
        **{"parent": None, "title": "a", "filename": "a.txt", "size": 1, "sha256": "0"},
        **{"version": 1, "live_version": None, "state": state, "created_at": 0},
        **{"submitted_at": 0, "finished_at": None, "properties": {}, "steps": []},
        **{"error": None, "receipt": None},
    }
    return httpx.Response(200, json=told | more)


def test_waiting_ends_when_it_is_live_or_says_why_not() -> None:
    told: list[str] = []
    client, _ = desk(document("waiting"), document("working"), document("live"))
    live = client.wait_until_live("d", on_progress=lambda at: told.append(at.state))
    assert live.state == "live"
    assert told == ["waiting", "working", "live"]
    failed = {"type": "broken-file", "title": "Broken", "detail": "it is cut", "advice": "save it"}
    client, _ = desk(document("failed", error=failed))
    with pytest.raises(BrokenFile, match="it is cut"):
        client.wait_until_live(models.Submitted.model_validate(SUBMITTED))
    client, _ = desk(document("deleted"))
    with pytest.raises(PermanentError, match="was deleted"):
        client.wait_until_live("d")
    client, _ = desk(document("stalled"))
    with pytest.raises(DeskDown, match="stalled after 0 s"):
        client.wait_until_live("d", seconds=0)


def test_a_batch_is_waited_for() -> None:
    left: list[int] = []
    client, _ = desk(*(httpx.Response(200, json=BATCH | {"left": n}) for n in (2, 1, 0)))
    client.wait_for_batch("b", on_progress=lambda batch: left.append(batch.left))
    assert left == [2, 1, 0]
    client, _ = desk(httpx.Response(200, json=BATCH | {"left": 2}))
    with pytest.raises(DeskDown, match="2 documents of 'b' are left"):
        client.wait_for_batch("b", seconds=0)


NODE = '{"node":"planner","attempt":0,"milliseconds":1,"facts":{}}'


def stream(text: str) -> httpx.Response:
    return httpx.Response(200, text=text, headers={"Content-Type": "text/event-stream"})


def test_an_answer_comes_as_a_stream_and_an_error_in_it_is_raised() -> None:
    error = json.dumps(json.loads(problem(SearchTimeout).content))
    client, asked = desk(stream(f"event: node\ndata: {NODE}\n\nevent: error\ndata: {error}\n\n"))
    events = client.answer_stream("main", "leave?")
    first = next(events)
    assert isinstance(first, models.NodeMessage)
    assert first.node == "planner"
    with pytest.raises(SearchTimeout):
        next(events)
    assert asked[0].headers["Accept"] == "text/event-stream"
    client, _ = desk(stream(f"event: node\ndata: {NODE}\n\n"))
    with pytest.raises(PermanentError, match="ended before the answer"):
        list(client.answer_stream("main", "leave?"))


def event(number: int) -> str:
    told = {
        **{"event_id": number, "kind": "step.started", "document_id": "d", "collection": "main"},
        **{"tenant": "", "version": 1, "step": "extract", "at": 0, "data": None},
    }
    return f"id: {number}\nevent: step.started\ndata: {json.dumps(told)}\n\n"


def test_a_stream_that_breaks_off_goes_on_after_the_last_event() -> None:
    def broken(request: httpx.Request) -> httpx.Response:
        def parts() -> Iterator[bytes]:
            yield f"retry: 10\n\n: nothing new\n\n{event(7)}".encode()
            raise httpx.ReadError("broke off")

        return httpx.Response(200, content=parts())

    answers = (
        broken,
        stream(f"retry: 10\n\n{event(8)}id: 9\nevent: step"),
        stream(f"retry: 10\r\n\r\n{event(9)}event: end\ndata: {{}}\n\n"),
    )
    client, asked = desk(*answers)
    assert [each.event_id for each in client.follow("d")] == [7, 8, 9]
    last = [request.headers.get("Last-Event-ID") for request in asked]
    assert last == [None, "7", "8"]
    client, asked = desk(httpx.Response(204))
    assert list(client.follow("d", after=9)) == []
    assert asked[0].headers["Last-Event-ID"] == "9"
    client, asked = desk(LOST[0])
    with pytest.raises(DeskDown):
        next(client.follow("d"))
    assert len(asked) == 1 + SOON.most


def test_lines_come_one_by_one_and_pages_one_after_the_other() -> None:
    client, _ = desk(httpx.Response(200, text='{"chunk_id": 1}\n'))
    with pytest.raises(PermanentError, match="not understood"):
        list(client.export_memory("main"))
    pages = [
        {"documents": [json.loads(document("live").content)], "states": {}, "next_before": 5.5},
        {"documents": [json.loads(document("live").content)], "states": {}, "next_before": None},
    ]
    client, asked = desk(*(httpx.Response(200, json=page) for page in pages))
    assert len(list(client.documents("main", tenant="a"))) == 2
    assert [request.url.params.get("before") for request in asked] == [None, "5.5"]


class Slow(BaseHTTPRequestHandler):
    """Sends one byte after the other, for ever."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        while not self.server.ending.wait(0.05):  # type: ignore[attr-defined]
            self.wfile.write(b" ")

    def log_message(self, *_: object) -> None:
        """Nothing."""


def test_an_answer_has_a_time_as_a_whole() -> None:
    with LoopbackServer(Slow) as server:
        url = f"http://127.0.0.1:{server.server_port}"
        with Client(url, timeout=0.3, retries=NO_RETRIES) as client:
            started = time.monotonic()
            with pytest.raises(DeskDown, match="no whole answer"):
                client.healthz()
        assert time.monotonic() - started < 2


def test_threads_share_a_client() -> None:
    client, asked = desk(found())
    threads = [threading.Thread(target=client.search, args=("main", "leave")) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(asked) == 8


@pytest.mark.parametrize("backend", ["asyncio"])
def test_the_client_that_awaits_does_the_same(backend: str, tmp_path: Path) -> None:
    answers = [LOST[0], found(), httpx.Response(202, json=SUBMITTED), document("live")]
    node = f"event: node\ndata: {NODE}\n\n"

    def handle(_: httpx.Request) -> httpx.Response:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def use() -> None:
        http = httpx.AsyncClient(transport=httpx.MockTransport(handle))
        async with AsyncClient("http://desk", retries=SOON, http=http) as client:
            assert (await client.search("main", "leave")).hits
            path = tmp_path / "a.txt"
            path.write_bytes(b"x" * 200_000)
            told: list[Sent] = []
            made = await client.upload("main", path, on_progress=told.append)
            assert told[-1].bytes_sent == 200_000
            assert (await client.wait_until_live(made)).state == "live"
            answers.append(stream(node + node))
            with pytest.raises(PermanentError, match="ended before"):
                assert len([each async for each in client.answer_stream("main", "x?")]) == 2

    anyio.run(use, backend=backend)
