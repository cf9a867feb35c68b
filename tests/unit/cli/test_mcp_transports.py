"""`callslip mcp` as a process: over standard input and output, and over streamable HTTP."""

import json
import re
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx
import httpx2
import pytest
from click.testing import CliRunner
from mcp import Client as McpClient
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_backend import McpBackend, running_backend
from mcp_types import CallToolResult

from callslip.cli.main import main

ROOT = Path(__file__).parents[3]
KEY = "sesame-0123"
SEARCH = ("search", {"collection": "papers", "query": "휴가"})
MODES = ("auto", "legacy")


@pytest.fixture
def backend() -> Iterator[McpBackend]:
    with running_backend() as made:
        yield made


def environment(**more: str) -> dict[str, str]:
    return {"PYTHONPATH": str(ROOT), "CALLSLIP_LOG__LEVEL": "DEBUG", **more}


def over_stdio(
    backend: McpBackend,
    folder: Path,
    use: Callable[[McpClient], Awaitable[Any]],
    *arguments: str,
    mode: str = "auto",
    **variables: str,
) -> Any:
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "callslip.cli", "mcp", "--url", backend.url, *arguments],
        env=environment(**variables),
        cwd=folder,
    )

    async def run() -> Any:
        with (folder / "stderr").open("w") as errors:
            async with McpClient(stdio_client(parameters, errors), mode=mode) as client:
                return await use(client)

    return anyio.run(run)


@pytest.mark.long
@pytest.mark.parametrize("mode", MODES)
def test_a_client_talks_over_standard_input_and_output(
    backend: McpBackend, tmp_path: Path, mode: str
) -> None:
    backend.key = KEY
    report: list[float] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        report.append(progress)

    async def use(client: McpClient) -> list[CallToolResult]:
        sent = {"collection": "papers", "name": "a", "path": "a.txt"}
        return [
            await client.call_tool(*SEARCH),
            await client.call_tool("ingest", sent, progress_callback=note),
            await client.call_tool("ingest", sent | {"path": "../stderr"}),
        ]

    served = tmp_path / "served"
    served.mkdir()
    (served / "a.txt").write_text("text")
    files = ("--files", str(served))
    found, ingested, refused = over_stdio(
        backend, tmp_path, use, *files, mode=mode, CALLSLIP_API__KEY=KEY
    )
    assert found.structured_content["hits"][0]["text"] == "출산 휴가는 90일이다."
    assert ingested.structured_content["state"] == "live"
    assert backend.files == {"a": b"text"}
    assert report == sorted(set(report))
    assert report[-1] == 6
    assert refused.is_error
    assert {header for _, header, _ in backend.requests} == {f"Bearer {KEY}"}
    logged = (tmp_path / "stderr").read_text()
    assert "휴가" not in logged
    assert KEY not in logged


@pytest.mark.long
def test_standard_output_carries_nothing_but_the_protocol(
    backend: McpBackend, tmp_path: Path
) -> None:
    meta = {"name": "t", "version": "1"}
    began = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": meta}
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": began},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "none"}},
        {"jsonrpc": "2.0", "id": 3, "method": "no/such"},
    ]
    sent = "not JSON\n\n[]\n" + "".join(json.dumps(line) + "\n" for line in lines)
    with subprocess.Popen(
        (sys.executable, "-m", "callslip.cli", "mcp", "--url", backend.url),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        cwd=tmp_path,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(sent.encode())
        process.stdin.flush()
        answers = []
        while not {1, 2, 3} <= {answer.get("id") for answer in answers}:
            answers.append(json.loads(process.stdout.readline()))
        rest, errors = process.communicate(timeout=60)  # it ends with its input
        assert process.returncode == 0
        assert rest == b""
        assert errors  # where the log goes
    assert all(answer["jsonrpc"] == "2.0" for answer in answers)


@pytest.mark.long
def test_without_a_server_the_server_starts_and_its_tools_say_so(
    backend: McpBackend, tmp_path: Path
) -> None:
    backend.url = "http://127.0.0.1:9"

    async def use(client: McpClient) -> CallToolResult:
        return await client.call_tool(*SEARCH)

    result = over_stdio(backend, tmp_path, use)
    assert result.is_error
    assert "no answer from http://127.0.0.1:9" in result.content[0].text
    assert "Traceback" not in (tmp_path / "stderr").read_text()


@contextmanager
def served(backend: McpBackend, folder: Path, *arguments: str, **variables: str) -> Iterator[str]:
    """The URL of a server over HTTP; afterwards it ends as it is told, with nothing on stdout."""
    with ExitStack() as stack:
        errors = stack.enter_context((folder / "stderr").open("w"))
        process = subprocess.Popen(
            (
                *(sys.executable, "-m", "callslip.cli", "mcp", "--http", "--port", "0"),
                *("--url", backend.url, *arguments),
            ),
            env=environment(**variables),
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=errors,
        )
        stack.callback(process.wait)
        stack.callback(process.kill)
        yield _announced(process, folder / "stderr")
        process.terminate()
        out, _ = process.communicate(timeout=30)
        assert out == b""


def _announced(process: "subprocess.Popen[bytes]", stderr: Path) -> str:
    for _ in range(600):
        assert process.poll() is None, stderr.read_text()
        if found := re.search("^MCP server: (.+)\n", stderr.read_text(), re.MULTILINE):
            return found[1]
        time.sleep(0.1)
    raise AssertionError(stderr.read_text())


@asynccontextmanager
async def with_key(url: str, key: str | None) -> Any:
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    async with (
        httpx2.AsyncClient(headers=headers, trust_env=False) as http,
        streamable_http_client(url, http_client=http) as streams,
    ):
        yield streams


def over_http(
    url: str, key: str | None, *calls: tuple[str, dict[str, Any]], mode: str = "auto"
) -> list[CallToolResult]:
    async def run() -> list[CallToolResult]:
        async with McpClient(with_key(url, key), mode=mode) as client:
            return [await client.call_tool(*call) for call in calls]

    return anyio.run(run)


@pytest.mark.long
def test_over_http_the_callers_key_is_checked_and_goes_on_to_the_server(
    backend: McpBackend, tmp_path: Path
) -> None:
    backend.key = KEY
    with served(backend, tmp_path, CALLSLIP_API__KEY=KEY) as url:
        for mode in MODES:
            sent = ("ingest", {"collection": "papers", "name": "a", "text": "b"})
            found, ingested = over_http(url, KEY, SEARCH, sent, mode=mode)
            assert found.structured_content["trace_id"] == "t1"
            assert ingested.structured_content["state"] == "live"
        assert {header for _, header, _ in backend.requests} == {f"Bearer {KEY}"}
        backend.requests.clear()
        for header in (None, "", f"Bearer {KEY}x", "Bearer", f"Basic {KEY}", b"Bearer \xff\xfe"):
            answer = posted(url, {} if header is None else {"Authorization": header})
            assert answer.status_code == 401
            assert answer.headers["WWW-Authenticate"] == 'Bearer realm="Callslip"'
            assert KEY not in answer.text
        assert backend.requests == []


@pytest.mark.long
def test_a_server_without_a_key_hands_on_what_the_caller_sent(
    backend: McpBackend, tmp_path: Path
) -> None:
    backend.key = KEY
    with served(backend, tmp_path) as url:
        (found,) = over_http(url, KEY, SEARCH)
        assert not found.is_error
        for key in ("another", None):
            (refused,) = over_http(url, key, SEARCH)
            assert refused.is_error
            assert (
                "the server does not know this key, or it is revoked or expired"
                in refused.content[0].text
            )
            assert "Authorization: Bearer KEY" in refused.content[0].text
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
        params = {"name": SEARCH[0], "arguments": SEARCH[1]}
        content = json.dumps(call | {"params": params}).encode()
        answer = posted(url, {"Authorization": b"Bearer \xff\xfe"}, content)
        assert "the server does not know this key, or it is revoked or expired" in answer.text
        heads = [header for _, header, _ in backend.requests]
        assert heads == [f"Bearer {KEY}", "Bearer another", None]


def posted(url: str, headers: dict[str, Any], content: bytes | None = None) -> httpx.Response:
    began = {"protocolVersion": "2025-06-18", "capabilities": {}}
    params = began | {"clientInfo": {"name": "t", "version": "1"}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    accept = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    with httpx.Client(trust_env=False, timeout=30) as http:
        sent = json.dumps(body).encode() if content is None else content
        return http.post(url, content=sent, headers=accept | headers)


@pytest.mark.long
def test_pages_of_other_names_and_bodies_too_large_are_refused(
    backend: McpBackend, tmp_path: Path
) -> None:
    with served(backend, tmp_path, "--allow-host", "callslip.test") as url:
        port = httpx.URL(url).port
        for host in (f"127.0.0.1:{port}", "localhost", f"localhost:{port}", "callslip.test:80"):
            assert posted(url, {"Host": host}).status_code == 200, host
        for host in ("evil.test", f"evil.test:{port}", "127.0.0.1.evil.test:80", "callslip.test.x"):
            assert posted(url, {"Host": host}).status_code == 421, host
        assert posted(url, {"Origin": f"http://localhost:{port}"}).status_code == 200
        for origin in ("http://evil.test", "null", "https://localhost.evil.test"):
            assert posted(url, {"Origin": origin}).status_code == 403, origin
        assert posted(url, {}, b"x" * ((16 << 20) + 1)).status_code == 413
        assert posted(url, {}, b"[" * 100_000).status_code == 400
        assert backend.requests == []


def test_files_are_not_read_for_whoever_calls_over_http(tmp_path: Path) -> None:
    shown = CliRunner().invoke(main, ["mcp", "--http", "--files", str(tmp_path)])
    assert shown.exit_code == 2
    assert "not for --http" in shown.output
