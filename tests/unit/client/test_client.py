"""The Python client: what it sends, when it sends it again, and what it makes of answers."""

import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from client_parts import (
    HIT,
    LOST,
    NODE,
    SOON,
    SUBMITTED,
    Pipe,
    client_of,
    document,
    found,
    problem,
    stream,
)
from loopback import LoopbackServer

from callslip.client import NO_RETRIES, AsyncClient, Client, Sent
from callslip.errors import (
    BacklogFull,
    BadReply,
    BatchNotFound,
    CallslipError,
    CollectionNotFound,
    DocumentNotFound,
    InvalidRequest,
    ModelBudgetSpent,
    NotFound,
    Overloaded,
    PermanentError,
    SearchTimeout,
    ServerDown,
    StoreDown,
    ThreadNotFound,
)


def test_an_answer_is_typed_and_what_a_newer_server_adds_is_kept() -> None:
    newer = found(fusion="quantum", colour="blue", hits=[HIT | {"mood": 1}])
    client, sent_request = client_of(newer)
    answer = client.search("main", "leave", top=1, having_all={"year >=": 2024})
    assert answer.hits[0].legs.keyword is not None
    assert answer.hits[0].legs.keyword.rank == 1
    assert (answer.fusion, answer.colour, answer.hits[0].mood) == ("quantum", "blue", 1)
    sent = {"collection": "main", "query": "leave", "top": 1, "having_all": {"year >=": 2024}}
    assert json.loads(sent_request[0].content) == sent
    assert sent_request[0].headers["User-Agent"]


@pytest.mark.parametrize(
    "error", [CollectionNotFound, BadReply, InvalidRequest, ServerDown, SearchTimeout, StoreDown]
)
def test_a_problem_is_the_error_of_its_class(error: type[CallslipError]) -> None:
    client, _ = client_of(problem(error, **{"Retry-After": "7"}), retries=NO_RETRIES)
    with pytest.raises(error) as raised:
        client.search("main", "leave")
    assert (raised.value.detail, raised.value.advice) == ("what is wrong", "what to do")
    assert raised.value.retry_after == 7


@pytest.mark.parametrize(
    ("status", "kind"),
    [(502, ServerDown), (503, ServerDown), (504, ServerDown), (429, Overloaded)],
)
def test_what_stands_before_the_server_answers_without_a_problem(
    status: int, kind: type[CallslipError]
) -> None:
    page = httpx.Response(status, html="<h1>nginx</h1>", headers={"Retry-After": "0"})
    client, sent_request = client_of(page, found())
    assert client.search("main", "leave").hits
    assert len(sent_request) == 2
    client, _ = client_of(httpx.Response(status, json=["no problem"]), retries=NO_RETRIES)
    with pytest.raises(kind, match=f"http://server/v1/search answered {status}"):
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
def test_an_answer_that_is_none_of_a_server_says_so_and_is_not_asked_for_again(
    answer: httpx.Response,
) -> None:
    client, sent_request = client_of(answer)
    with pytest.raises(PermanentError) as raised:
        client.search("main", "leave")
    assert raised.value.advice
    assert len(sent_request) == 1


@pytest.mark.parametrize("lost", LOST)
def test_what_is_harmless_twice_is_sent_again(lost: Exception) -> None:
    client, sent_request = client_of(
        lost, lost, problem(StoreDown, **{"Retry-After": "0.01"}), found()
    )
    assert client.search("main", "leave").hits
    assert len(sent_request) == 4


def test_a_wait_is_never_shorter_than_the_server_says_and_none_is_begun_that_is_too_long() -> None:
    client, sent_request = client_of(problem(BacklogFull, **{"Retry-After": "0.2"}), found())
    started = time.monotonic()
    client.search("main", "leave")
    assert 0.2 <= time.monotonic() - started < 1
    late = problem(ModelBudgetSpent, **{"Retry-After": "40000"})
    client, sent_request = client_of(late)
    with pytest.raises(ModelBudgetSpent) as raised:
        client.answer("main", "leave?")
    assert raised.value.retry_after == 40000
    assert len(sent_request) == 1


def test_a_date_says_when_to_come_back_too() -> None:
    date = "Fri, 31 Dec 2999 23:59:59 GMT"
    for header, least in ((date, 1e9), ("soon", 2.0), ("-5", 0.0), ("nan", 0.0), ("inf", 0.0)):
        client, _ = client_of(problem(Overloaded, **{"Retry-After": header}), retries=NO_RETRIES)
        with pytest.raises(Overloaded) as raised:
            client.search("main", "leave")
        assert raised.value.retry_after >= least
        assert raised.value.retry_after < 1e11


def test_it_gives_up_after_so_many_tries() -> None:
    client, sent_request = client_of(LOST[0])
    with pytest.raises(ServerDown, match="no answer from http://server: it took too long"):
        client.search("main", "leave")
    assert len(sent_request) == 1 + SOON.most


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


@pytest.mark.parametrize("call", UNSAFE)
def test_what_may_have_been_done_is_not_done_twice(call: Callable[[Client], object]) -> None:
    client, sent_request = client_of(LOST[0])
    with pytest.raises(ServerDown):
        call(client)
    client, again = client_of(problem(StoreDown))
    with pytest.raises(StoreDown):
        call(client)
    assert (len(sent_request), len(again)) == (1, 1)


def test_what_did_no_work_is_sent_again_whatever_it_is() -> None:
    busy = problem(Overloaded, **{"Retry-After": "0"})
    made = {"webhook_id": "w", "url": "u", "collection": None, "events": []}
    answer = httpx.Response(201, json=made | {"created_at": 1, "stopped_at": None, "secret": "s"})
    client, sent_request = client_of(LOST[2], busy, answer)
    assert client.create_webhook("http://hook").secret == "s"
    assert len(sent_request) == 3


def test_the_key_is_sent_and_never_shown() -> None:
    client, sent_request = client_of(found(), key=" sesame-0123\n")
    client.search("main", "leave")
    client.with_key(None).search("main", "leave")
    sent = [request.headers.get("Authorization") for request in sent_request]
    assert sent == ["Bearer sesame-0123", None]
    assert "sesame" not in repr(client._address)
    for key in ("sesame\nX-Evil: 1", "sesame-열쇠"):
        with pytest.raises(InvalidRequest) as raised:
            Client(key=key)
        assert "sesame" not in str(raised.value)


def test_without_an_address_it_is_that_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CALLSLIP_API__URL", raising=False)
    monkeypatch.setenv("CALLSLIP_API__KEY", "sesame")
    assert Client().url == "http://127.0.0.1:8765"
    monkeypatch.setenv("CALLSLIP_API__URL", "https://server.example/")
    assert Client()._address.key == "sesame"
    assert Client().url == "https://server.example"
    assert Client("http://other")._address.key is None  # that server's key is no other's business


@pytest.mark.parametrize(
    "url", ["", "notes", "ftp://server", "http://", "http://[", 7, "http:server"]
)
def test_what_is_no_address_is_refused(url: Any) -> None:
    with pytest.raises(InvalidRequest, match="no address"):
        Client(url)


@pytest.mark.parametrize("name", ["", ".", "..", None, 7, "\ud800"])
def test_names_that_lead_elsewhere_are_refused_before_anything_is_sent(name: Any) -> None:
    client, sent_request = client_of(found())
    for call in (client.delete_collection, client.get_document, client.show_ranking):
        with pytest.raises(InvalidRequest):
            call(name)
    with pytest.raises(InvalidRequest):
        client.get_conversation("main", name)
    assert sent_request == []


@pytest.mark.parametrize(
    ("call", "error", "detail"),
    [
        ("get_document", DocumentNotFound, "document 'a/b' does not exist"),
        ("list_versions", DocumentNotFound, "document 'a/b' does not exist"),
        ("get_batch", BatchNotFound, "batch 'a/b' does not exist"),
        ("show_ranking", CollectionNotFound, "collection 'a/b' does not exist"),
    ],
)
def test_what_has_a_slash_is_no_id(call: str, error: type[NotFound], detail: str) -> None:
    client, sent_request = client_of(found())
    with pytest.raises(error) as raised:
        getattr(client, call)("a/b")
    assert raised.value.detail == detail
    with pytest.raises(ThreadNotFound, match="conversation '가 나/다' does not exist"):
        client.get_conversation("main", "가 나/다")
    assert sent_request == []


def test_a_path_of_ones_own_stays_at_the_server() -> None:
    client, sent_request = client_of(httpx.Response(200, json={"new": 1}), key="sesame")
    assert client.request_json("POST", "/v1/new", json={}, params={"a": "b c"}) == {"new": 1}
    assert str(sent_request[0].url) == "http://server/v1/new?a=b+c"
    for path in (".evil.example/v1", "@evil.example/v1", "", "/v1/../metrics", "/v1/\n"):
        with pytest.raises(InvalidRequest):
            client.request_json("GET", path)
    assert len(sent_request) == 1


def test_a_name_is_one_part_of_the_path() -> None:
    client, sent_request = client_of(problem(CollectionNotFound))
    with pytest.raises(CollectionNotFound):
        client.delete_tenant("main", "a/b ?#%/../c")
    assert (
        sent_request[0].url.raw_path == b"/v1/collections/main/tenants/a%2Fb%20%3F%23%25%2F..%2Fc"
    )


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
    client, sent_request = client_of(found())
    with pytest.raises(InvalidRequest):
        client.search("main", **given)
    with pytest.raises(InvalidRequest):
        client.upload("main", b"x", filename="a", properties={"a": object()})
    assert sent_request == []


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
            with pytest.raises(ServerDown, match="no whole answer"):
                client.healthz()
        assert time.monotonic() - started < 2


def test_threads_share_a_client() -> None:
    client, sent_request = client_of(found())
    threads = [threading.Thread(target=client.search, args=("main", "leave")) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(sent_request) == 8


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
        async with AsyncClient("http://server", retries=SOON, http=http) as client:
            assert (await client.search("main", "leave")).hits
            path = tmp_path / "a.txt"
            path.write_bytes(b"x" * 200_000)
            output: list[Sent] = []
            made = await client.upload("main", path, on_progress=output.append)
            assert output[-1].bytes_sent == 200_000
            assert (await client.wait_until_live(made)).state == "live"
            answers.append(stream(node + node))
            with pytest.raises(PermanentError, match="ended before"):
                assert len([each async for each in client.answer_stream("main", "x?")]) == 2

    anyio.run(use, backend=backend)
