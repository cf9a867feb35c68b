"""The MCP server before the API of a running stack that asks for its key."""

import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from click.testing import CliRunner
from mcp import Client as McpClient
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import CallToolResult
from stack import WITHOUT_MODEL, Stack, new_home

from callslip.cli.main import main

KEY = "sesame-0123"
ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples" / "documents"
TEXT = "# Leave\n\nParental leave lasts fourteen months. It is asked for eight weeks before.\n"

PATIENT = {"wait_seconds": 120}
"""A stack's first document loads the models of all steps: 31 seconds beside three other stacks."""


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory, models_dir: Path) -> Iterator[Stack]:
    home = new_home(tmp_path_factory, models_dir)
    stack = Stack(home, WITHOUT_MODEL | {"CALLSLIP_API__KEY": KEY}).start()
    yield stack
    stack.stop()


def used(
    stack: Stack, folder: Path, use: Callable[[McpClient], Awaitable[Any]], *arguments: str
) -> Any:
    """Over standard input and output, with the settings of the stack."""
    settings = {k: v for k, v in stack.environ.items() if k.startswith("CALLSLIP_")}
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "callslip.cli", "mcp", "--files", str(folder), *arguments],
        env=settings | {"PYTHONPATH": str(ROOT)},
        cwd=folder,
    )

    async def run() -> Any:
        async with McpClient(stdio_client(parameters)) as client:
            return await use(client)

    return anyio.run(run)


def structured(result: CallToolResult) -> dict[str, Any]:
    assert not result.is_error, result.content
    assert result.structured_content is not None
    return result.structured_content


@pytest.mark.long
def test_a_document_goes_in_is_found_read_and_learned_from(locked: Stack, tmp_path: Path) -> None:
    (tmp_path / "leave.md").write_text(TEXT)
    report: list[float] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        report.append(progress)

    async def use(client: McpClient) -> None:
        sent = {"collection": "staff", "name": "leave.md", "path": "leave.md", **PATIENT}
        made = structured(await client.call_tool("ingest", sent, progress_callback=note))
        assert (made["state"], made["outcome"]) == ("live", "accepted")
        assert report == sorted(set(report))
        again = structured(await client.call_tool("ingest", sent))
        assert again["outcome"] == "unchanged"
        request = {"collection": "staff", "query": "how long is parental leave?"}
        found = structured(await client.call_tool("search", request))
        hit = found["hits"][0]
        assert "fourteen months" in hit["text"]
        read = {"document_id": hit["document_id"], **hit["span"]}
        document = structured(await client.call_tool("get_document", read))
        assert document["text"] == hit["text"]
        assert document["state"] == "live"
        reply = {
            "trace_id": found["trace_id"],
            "verdict": "helpful",
            "chunk_ids": [hit["chunk_id"]],
        }
        learned = structured(await client.call_tool("feedback", reply))
        assert learned["counted"] == [hit["chunk_id"]]
        missing = await client.call_tool("search", request | {"collection": "none"})
        assert missing.is_error
        assert "GET /v1/collections lists the names" in missing.content[0].text

    used(locked, tmp_path, use)


@pytest.mark.long
def test_a_bound_server_has_its_tenant_alone(locked: Stack, tmp_path: Path) -> None:
    async def put(client: McpClient) -> tuple[str, str]:
        made = structured(
            await client.call_tool("ingest", {"name": "leave.md", "text": TEXT, **PATIENT})
        )
        request = {"query": "parental leave"}
        return made["document_id"], structured(await client.call_tool("search", request))[
            "trace_id"
        ]

    async def pry(client: McpClient) -> None:
        structured(
            await client.call_tool(
                "ingest", {"name": "other.md", "text": "# Bread\n\nRye.", **PATIENT}
            )
        )
        found = structured(await client.call_tool("search", {"query": "parental leave"}))
        assert not any("fourteen" in hit["text"] for hit in found["hits"])
        for name, arguments in (
            ("search", {"query": "leave", "tenant": "ours"}),
            ("get_document", {"document_id": document_id}),
            ("feedback", {"trace_id": trace_id, "verdict": "helpful", "chunk_ids": ["x"]}),
        ):
            assert (await client.call_tool(name, arguments)).is_error

    document_id, trace_id = used(locked, tmp_path, put, "-c", "shared", "--tenant", "ours")
    used(locked, tmp_path, pry, "-c", "shared", "--tenant", "theirs")


async def put_in_examples(client: McpClient) -> None:
    sent = []
    for name in ("employee-handbook.pdf", "it-security-manual.txt", "library-rules.md"):
        request = {"name": name, "path": name, "wait_seconds": 0}
        sent.append(structured(await client.call_tool("ingest", request))["document_id"])
    with anyio.fail_after(360):
        for document_id in sent:
            while await state(client, document_id) != "live":
                await anyio.sleep(0.5)


async def state(client: McpClient, document_id: str) -> str:
    document = structured(await client.call_tool("get_document", {"document_id": document_id}))
    assert document["state"] != "failed"
    return str(document["state"])


@pytest.mark.long
def test_a_question_is_answered_with_citations_that_are_learned_from(stack: Stack) -> None:
    async def use(client: McpClient) -> None:
        await put_in_examples(client)
        request = {"question": "How long is parental leave?", "thread_id": "t"}
        found = structured(await client.call_tool("answer", request))
        assert found["answered"], (found["reason"], found["certainty"])
        assert "three years" in found["text"]
        assert "[1]" in found["text"]
        citation = found["citations"][0]
        read = {"document_id": citation["document_id"], **citation["span"]}
        document = structured(await client.call_tool("get_document", read))
        assert document["text"] == citation["quote"]
        chunk_ids = [citation["chunk_id"]]
        reply = {"trace_id": found["trace_id"], "verdict": "helpful", "chunk_ids": chunk_ids}
        structured(await client.call_tool("feedback", reply))
        request = {"question": "How long is parental leave?"}
        found = structured(await client.call_tool("answer", request))
        reply = {"trace_id": found["trace_id"], "verdict": "helpful", "citations": [1]}
        structured(await client.call_tool("feedback", reply))
        request = {"question": "Who won the world cup of 1998?"}
        found = structured(await client.call_tool("answer", request))
        assert not found["answered"]

    used(stack, EXAMPLES, use, "-c", "answered")


@pytest.mark.long
def test_the_server_and_its_page_open_with_the_key_alone(
    locked: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    with httpx.Client(base_url=locked.url, trust_env=False) as http:
        assert http.get("/readyz").status_code == 200
        assert http.get("/v1/collections").status_code == 401
        page = http.get("/", headers={"Accept": "text/html"})
        assert (page.status_code, page.headers["Location"]) == (302, "/login")
        assert http.get("/", auth=("reader", KEY)).status_code == 200
        headers = {"Authorization": f"Bearer {KEY}"}
        assert http.get("/metrics", headers=headers).status_code == 200
    monkeypatch.setenv("CALLSLIP_DATA_DIR", str(locked.data_dir))
    refused = CliRunner().invoke(main, ["status"])
    assert refused.exit_code == 1
    assert "carries no key" in refused.output
    monkeypatch.setenv("CALLSLIP_API__KEY", KEY)
    assert CliRunner().invoke(main, ["status"]).exit_code == 0
    report = CliRunner().invoke(main, ["doctor", "--json"]).output
    assert "the server takes it" in report
