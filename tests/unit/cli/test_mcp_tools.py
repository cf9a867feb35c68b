"""The tools of the MCP server, called by the SDK's own client in memory."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client as McpClient
from mcp_backend import ANSWER, HIT, VALIDITY, McpBackend, running_backend
from mcp_types import CallToolResult, Tool
from opentelemetry import trace
from pydantic import SecretStr

from callslip.agent.messages import Answer
from callslip.cli.mcp import tools as mcp_tools
from callslip.cli.mcp.files import open_within
from callslip.cli.mcp.scope import Scope
from callslip.cli.mcp.server import make_server
from callslip.client import NO_RETRIES, Client
from callslip.errors import InvalidRequest
from callslip.retrieval.messages import Hit, TimeClamp
from callslip.vocabulary import WITHOUT_EXPLORATION


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> Iterator[McpBackend]:
    monkeypatch.setattr(mcp_tools, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(mcp_tools, "TRACE_SECONDS", 0.05)
    with running_backend() as made:
        yield made


def called(
    backend: McpBackend, *calls: tuple[str, dict[str, Any]], scope: Scope | None = None
) -> list[CallToolResult]:
    """Call tools at the same time."""
    results: dict[int, CallToolResult] = {}

    async def call(client: McpClient, n: int, name: str, arguments: dict[str, Any]) -> None:
        results[n] = await client.call_tool(name, arguments)

    async def main() -> None:
        key = SecretStr(backend.key) if backend.key else None
        with Client(backend.url, key=key, retries=NO_RETRIES) as over:
            async with (
                McpClient(make_server(over, scope or Scope())) as client,
                anyio.create_task_group() as tasks,
            ):
                for n, (name, arguments) in enumerate(calls):
                    tasks.start_soon(call, client, n, name, arguments)

    anyio.run(main)
    return [results[n] for n in range(len(calls))]


def one(
    backend: McpBackend, name: str, /, *, scope: Scope | None = None, **arguments: Any
) -> CallToolResult:
    (result,) = called(backend, (name, arguments), scope=scope)
    return result


def structured(result: CallToolResult) -> dict[str, Any]:
    assert not result.is_error, result.content
    assert result.structured_content is not None
    return result.structured_content


def refusal(result: CallToolResult) -> str:
    assert result.is_error, result.structured_content
    text = result.content[0].text  # type: ignore[union-attr]
    assert "Traceback" not in text
    return text


def tools(scope: Scope) -> dict[str, Tool]:
    async def main() -> list[Tool]:
        async with McpClient(
            make_server(Client("http://127.0.0.1:9", retries=NO_RETRIES), scope)
        ) as client:
            return (await client.list_tools()).tools

    return {tool.name: tool for tool in anyio.run(main)}


def test_every_tool_teaches_and_says_what_it_does_to_the_world() -> None:
    found = tools(Scope())
    assert set(found) == {"search", "answer", "get_document", "ingest", "feedback"}
    for tool in found.values():
        assert tool.description
        assert len(tool.description) > 200
        assert "\n    " not in tool.description
        assert tool.title
        assert tool.output_schema is not None
        assert tool.input_schema["additionalProperties"] is False
        assert tool.annotations is not None
        assert tool.annotations.open_world_hint is False
    reads = {name for name, tool in found.items() if tool.annotations.read_only_hint}
    assert reads == {"search", "answer", "get_document"}
    assert found["ingest"].annotations.destructive_hint is True
    assert found["feedback"].annotations.destructive_hint is False


def test_the_server_of_these_tests_answers_in_the_shapes_of_the_real_one() -> None:
    Hit.model_validate(HIT)
    Answer.model_validate(ANSWER)
    TimeClamp.model_validate(VALIDITY)


def test_a_search_gives_passages_and_the_name_of_the_search(backend: McpBackend) -> None:
    conditions = {"doc_type": "law"}
    found = structured(
        one(backend, "search", collection="papers", query="휴가", top=3, having_all=conditions)
    )
    assert found["trace_id"] == "t1"
    (hit,) = found["hits"]
    assert hit["text"] == "출산 휴가는 90일이다."
    assert (hit["valid_from"], hit["valid_to"]) == ("2024-01-01", None)
    assert set(hit) == {
        *("rank", "score", "title", "heading", "text", "document_id", "chunk_id", "span"),
        *("pages", "source_url", "within", "valid_from", "valid_to"),
    }
    request = {"collection": "papers", "query": "휴가", "top": 3, "having_all": conditions}
    request["ranking"] = WITHOUT_EXPLORATION
    assert backend.bodies("/v1/search") == [request]


def test_what_models_send_for_nothing_is_nothing_and_json_in_text_stays_text(
    backend: McpBackend,
) -> None:
    left_out = {"tenant": None, "as_of": None, "having_all": None}
    structured(one(backend, "search", collection="papers", query='["a"]', **left_out))
    request = {"collection": "papers", "query": '["a"]', "top": 10}
    assert backend.bodies("/v1/search") == [request | {"ranking": WITHOUT_EXPLORATION}]
    text = json.dumps({"a": ["b"]})
    structured(one(backend, "ingest", collection="papers", name="a.json", text=text))
    (sent,) = backend.bodies("/v1/collections/papers/documents")
    assert sent["text"] == text


@pytest.mark.parametrize("readers", [[], ["user:ann"], None])
def test_a_document_for_nobody_is_sent_as_one(
    backend: McpBackend, readers: list[str] | None
) -> None:
    sent = {"collection": "papers", "name": "a", "readers": readers}
    structured(one(backend, "ingest", text="b", **sent))
    (body,) = backend.bodies("/v1/collections/papers/documents")
    assert body.get("readers") == readers


def test_who_may_not_read_what_it_sent_is_not_led_to_send_it_again(backend: McpBackend) -> None:
    backend.readable = False
    sent = {"collection": "papers", "name": "a", "text": "b", "readers": []}
    result = structured(one(backend, "ingest", **sent))
    assert (result["outcome"], result["state"]) == ("accepted", "unreadable")
    assert "Do not send it again" in result["advice"]


def test_calls_do_not_wait_for_each_other(backend: McpBackend) -> None:
    together = ("search", {"collection": "papers", "query": "together"})
    for result in called(backend, together, together):
        structured(result)


def test_an_answer_is_text_with_citations_and_structure(backend: McpBackend) -> None:
    result = one(backend, "answer", collection="papers", question="how long?", thread_id="t")
    found = structured(result)
    assert found["text"] == "Leave lasts 90 days. [1] It is paid. [1]"
    assert found["citations"][0]["quote"] == "Leave lasts 90 days."
    assert (found["reason"], found["certainty"]) == ("supported", "sure")
    text = result.content[0].text  # type: ignore[union-attr]
    assert text.startswith("Leave lasts 90 days. [1]")
    assert "[1] Leave › Parents (document_id d1, 3–23): Leave lasts 90 days." in text
    assert "\nUnderstood as: how long is leave?\n" in text
    request = {"collection": "papers", "question": "how long?", "thread_id": "t"}
    assert backend.bodies("/v1/answer") == [request]
    same = one(backend, "answer", collection="papers", question="how long is leave?")
    assert "Understood as" not in same.content[0].text  # type: ignore[union-attr]


def test_a_document_is_read_in_parts_that_make_its_text(backend: McpBackend) -> None:
    parts, start = [], 0
    while start is not None:
        found = structured(one(backend, "get_document", document_id="d1", start=start))
        assert len(found["text"]) <= mcp_tools.TEXT_CHARACTERS
        assert found["start"] == start
        parts.append(found["text"])
        start = found["next_start"]
    assert len(parts) == 3
    assert "".join(parts) == backend.text
    found = structured(one(backend, "get_document", document_id="d1", start=10, end=12))
    assert found["text"] == backend.text[10:12]
    found = structured(one(backend, "get_document", document_id="d1", start=10**9))
    assert (found["text"], found["next_start"]) == ("", None)


def test_a_document_without_text_yet_tells_its_state(backend: McpBackend) -> None:
    backend.text = ""
    found = structured(one(backend, "get_document", document_id="d1"))
    assert (found["state"], found["text"], found["length"]) == ("working", "", 0)


def test_ingesting_waits_until_it_is_live_and_tells_how_far_it_is(backend: McpBackend) -> None:
    output: list[tuple[float, float | None, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        output.append((progress, total, message))

    async def main() -> CallToolResult:
        with Client(backend.url, retries=NO_RETRIES) as over:
            async with McpClient(make_server(over, Scope())) as client:
                arguments = {"collection": "papers", "name": "leave.md", "text": "Leave lasts."}
                return await client.call_tool("ingest", arguments, progress_callback=note)

    found = structured(anyio.run(main))
    assert (found["state"], found["outcome"], found["steps_done"]) == ("live", "accepted", 6)
    assert output == [
        (2, 6, "leave.md: working"),
        (4, 6, "leave.md: working"),
        (6, 6, "leave.md: live"),
    ]
    body = {"name": "leave.md", "text": "Leave lasts.", "tenant": ""}
    assert backend.bodies("/v1/collections/papers/documents") == [body]


def test_a_key_that_makes_no_collection_ingests_into_one(backend: McpBackend) -> None:
    backend.makes_collections = False
    sent = {"collection": "papers", "name": "a", "text": "b", "tenant": "mine"}
    assert structured(one(backend, "ingest", **sent))["state"] == "live"


def test_ingesting_that_takes_longer_says_how_to_ask_again(backend: McpBackend) -> None:
    backend.polls_until_live = 10**6
    sent = {"collection": "papers", "name": "a", "text": "b", "wait_seconds": 0.05}
    found = structured(one(backend, "ingest", **sent))
    assert found["state"] == "working"
    assert "get_document" in found["advice"]


def test_a_document_that_fails_is_an_error_with_what_to_do(backend: McpBackend) -> None:
    backend.fails = True
    output = refusal(one(backend, "ingest", collection="papers", name="a", text="b"))
    assert "'a' (document d1) failed: it is blank. Write more." in output


def test_a_file_is_sent_only_from_the_folder_that_was_named(
    backend: McpBackend, tmp_path: Path
) -> None:
    folder = tmp_path / "served"
    folder.mkdir()
    (folder / "a.txt").write_bytes(b"in")
    sent = {"collection": "papers", "name": "a", "path": "a.txt"}
    structured(one(backend, "ingest", **sent, scope=Scope(files=folder)))
    assert backend.files == {"a": b"in"}
    output = refusal(
        one(backend, "ingest", **sent | {"path": "../b.txt"}, scope=Scope(files=folder))
    )
    assert "'../b.txt' is no file of the folder that this server may read" in output
    output = refusal(one(backend, "ingest", **sent))  # started without --files
    assert "path" in output
    assert "path" not in tools(Scope())["ingest"].input_schema["properties"]
    output = refusal(one(backend, "ingest", **sent, text="b", scope=Scope(files=folder)))
    assert "either text or path" in output


def test_no_path_leads_out_of_the_folder(tmp_path: Path) -> None:
    outside, root = tmp_path / "outside", tmp_path / "root"
    for made in (outside, root, root / "below", root / ".git", tmp_path / "root2"):
        made.mkdir()
    for file in (
        *(outside / "b", root / "below" / "a", root / ".hidden", root / ".git" / "c"),
        tmp_path / "root2" / "d",
    ):
        file.write_bytes(b"text")
    (root / "link").symlink_to(outside / "b")
    (root / "folder").symlink_to(outside)
    (root / "loop").symlink_to(root / "loop")
    (root / "shown").symlink_to(root / ".hidden")
    (root / "good").symlink_to(root / "below" / "a")
    os.mkfifo(root / "pipe")
    for given in ("below/a", "below/../below/a", str(root / "below" / "a"), "good", "./below//a"):
        with open_within(root, given) as file:
            assert file.read() == b"text"
    for given in (
        *("../outside/b", str(outside / "b"), "link", "folder/b", "below/../../outside/b", "loop"),
        *("", ".", "below", "none", "a\0b", ".hidden", ".git/c", "shown", "pipe", "../root2/d"),
        *("~/x", "x" * 5000, "\ud800", "/dev/zero", "/proc/self/environ", "file:///etc/passwd"),
    ):
        with pytest.raises(InvalidRequest, match="is no file of the folder"):
            open_within(root, given)


def test_feedback_names_hits_or_citations(backend: McpBackend) -> None:
    request = {"trace_id": "t1", "verdict": "helpful"}
    found = structured(one(backend, "feedback", **request, chunk_ids=["c9"]))
    assert found == {"feedback_id": "f1", "chunk_ids": ["c9"], "counted": ["c9"]}
    structured(one(backend, "feedback", **request, citations=[1, 2]))
    output = refusal(one(backend, "feedback", **request))
    assert "chunk_ids" in output
    body = request | {"user": "mcp"}
    assert backend.bodies("/v1/feedback") == [
        body | {"chunk_ids": ["c9"]},
        body | {"citations": [1, 2]},
    ]
    backend.key = "sesame-0123"
    structured(one(backend, "feedback", **request, citations=[3]))
    assert backend.bodies("/v1/feedback")[2] == request | {"citations": [3]}


BOUND = Scope(collection="papers", tenant="mine")


def test_a_bound_server_fills_in_its_collection_and_tenant(backend: McpBackend) -> None:
    backend.owner = {"collection": "papers", "tenant": "mine"}
    for given in ({}, {"collection": "papers", "tenant": "mine"}, {"tenant": None}):
        structured(one(backend, "search", query="휴가", scope=BOUND, **given))
    structured(one(backend, "ingest", name="a", text="b", scope=BOUND))
    structured(one(backend, "get_document", document_id="d1", scope=BOUND))
    for trace_id in ("t1", "t2"):
        given = {"trace_id": trace_id, "verdict": "helpful", "chunk_ids": ["c1"]}
        structured(one(backend, "feedback", **given, scope=BOUND))
    request = {"collection": "papers", "query": "휴가", "top": 10, "tenant": "mine"}
    request["ranking"] = WITHOUT_EXPLORATION
    assert backend.bodies("/v1/search") == [request] * 3
    (sent,) = backend.bodies("/v1/collections/papers/documents")
    assert sent["tenant"] == "mine"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("search", {"query": "x", "collection": "other"}),
        ("search", {"query": "x", "tenant": "other"}),
        ("answer", {"question": "x", "tenant": "other"}),
        ("ingest", {"name": "x", "text": "x", "tenant": "other"}),
        ("ingest", {"name": "x", "text": "x", "collection": "papers/../other"}),
    ],
)
def test_a_bound_server_takes_no_other_collection_or_tenant(
    backend: McpBackend, name: str, arguments: dict[str, Any]
) -> None:
    assert "Input should be" in refusal(one(backend, name, scope=BOUND, **arguments))
    assert backend.requests == []


@pytest.mark.parametrize("owner", [("papers", "other"), ("other", "mine")])
def test_documents_and_searches_of_others_are_as_if_there_were_none(
    backend: McpBackend, owner: tuple[str, str]
) -> None:
    backend.owner = dict(zip(("collection", "tenant"), owner, strict=True))
    theirs = refusal(one(backend, "get_document", document_id="d1", scope=BOUND))
    nobodys = refusal(one(backend, "get_document", document_id="d2", scope=BOUND))
    assert theirs.replace("d1", "d2") == nobodys
    given = {"verdict": "helpful", "chunk_ids": ["c1"], "scope": BOUND}
    theirs = refusal(one(backend, "feedback", trace_id="t1", **given))
    nobodys = refusal(one(backend, "feedback", trace_id="t9", **given))
    assert theirs.replace("t1", "t9") == nobodys
    assert backend.bodies("/v1/feedback") == []
    assert not [path for path, _, _ in backend.requests if path.endswith("/text")]


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "arguments", "output"),
    [
        ("search", {"collection": "papers", "query": "x", "limit": 3}, "limit"),
        ("search", {"collection": "papers"}, "query"),
        ("search", {"collection": "../documents", "query": "x"}, "collection"),
        ("search", {"collection": "papers", "query": "x", "top": 10**9}, "top"),
        ("search", {"collection": "papers", "query": {"a": 1}}, "query"),
        ("search", {"collection": "papers", "query": "x", "having_all": "no"}, "having_all"),
        ("search", {"collection": "papers", "query": "\ud800"}, "Unicode"),
        (
            "search",
            {"collection": "papers", "query": "x", "having_all": '{"\\ud800": 1}'},
            "Unicode",
        ),
        ("get_document", {"document_id": "../../metrics"}, "document_id"),
        ("get_document", {"document_id": "d1", "start": -1}, "start"),
        ("feedback", {"trace_id": "../t", "verdict": "helpful", "chunk_ids": ["c"]}, "trace_id"),
        ("feedback", {"trace_id": "t1", "verdict": "validated", "chunk_ids": ["c"]}, "verdict"),
        ("ingest", {"collection": "papers", "name": "x", "text": "a" * 2_000_001}, "2000000"),
        ("ingest", {"collection": "papers", "name": "x", "text": "  "}, "either text or path"),
        ("ingest", {"collection": "a", "name": "x", "text": "x", "wait_seconds": "inf"}, "wait"),
        ("drop_everything", {}, "Unknown tool"),
    ],
)
def test_wrong_arguments_are_refused_in_words_and_never_reach_the_server(
    backend: McpBackend, name: str, arguments: dict[str, Any], output: str
) -> None:
    reply = refusal(one(backend, name, **arguments))
    assert output in reply
    assert len(reply) < 1000
    assert backend.requests == []


def test_errors_of_the_server_say_what_to_do(backend: McpBackend) -> None:
    output = refusal(one(backend, "search", collection="papers", query="busy"))
    assert "too much waits. Send it again after Retry-After seconds" in output
    assert "Try again after 10 s." in output
    output = refusal(one(backend, "search", collection="papers", query="odd"))
    assert "answered otherwise than this server understands" in output
    backend.url = "http://127.0.0.1:9"
    output = refusal(one(backend, "search", collection="papers", query="x"))
    assert "no answer from http://127.0.0.1:9" in output
    assert "callslip up" in output


def test_in_memory_and_over_stdio_the_key_is_that_of_the_settings(backend: McpBackend) -> None:
    backend.key = "sesame-0123"
    structured(one(backend, "search", collection="papers", query="x"))
    assert {header for _, header, _ in backend.requests} == {"Bearer sesame-0123"}


def test_no_text_of_documents_or_questions_is_logged(
    backend: McpBackend, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    secret = "Zaphod"
    structured(one(backend, "search", collection="papers", query=secret))
    refusal(one(backend, "search", collection="papers", query=secret, top="many"))
    structured(one(backend, "ingest", collection="papers", name="a", text=secret))
    refusal(one(backend, "ingest", collection="papers", name="a", text=secret * 400_000))
    assert secret not in "".join(record.getMessage() for record in caplog.records)


def test_spans_of_the_sdk_go_nowhere(backend: McpBackend) -> None:
    """Without a provider that somebody set, OpenTelemetry records nothing."""
    structured(one(backend, "search", collection="papers", query="x"))
    assert isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
    assert not trace.get_tracer("mcp-python-sdk").start_span("x").is_recording()
