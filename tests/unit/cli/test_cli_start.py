"""What a command imports: one that only talks to the server loads no part of the server."""

import json
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

HEAVY = (
    *("sqlalchemy", "numpy", "scipy", "kiwipiepy", "redis", "onnxruntime", "celery", "kombu"),
    *("flask", "chromadb", "openai", "mcp", "langgraph"),
)
"""Packages that only a process of the server, or a command that works on the data, may load."""

LINES = (
    *("ask why?", "attach crate t --name t", "compare why?", "conversation t", "detach t"),
    *("facets list", "ingest file.txt", "ingest chunk --doc-id x", "memory show"),
    *("jobs run jobs.jsonl", "options main", "retry --all"),
    *("rollback x 1", "search why?", "search why? -w year>=2024", "status", "status x"),
    *("status --batch x", "usage", "versions x"),
)
"""Of commands that only talk to the server."""

IMPORTS = """
import atexit, sys
sys.argv = ["callslip", *sys.argv[1:]]
names = lambda: {name.partition(".")[0] for name in sys.modules}
atexit.register(lambda: print("IMPORTED", *names()))
from callslip.cli.entry import main
main()
"""

EACH = """
import io, json, sys, traceback
from contextlib import redirect_stderr, redirect_stdout
from callslip.cli.entry import main
before = set()
for line in json.load(sys.stdin):
    sys.argv = ["callslip", *line]
    with redirect_stdout(io.StringIO()) as reply, redirect_stderr(reply):
        try:
            main()
        except SystemExit:
            pass
        except BaseException:
            traceback.print_exc()
    names = {name.partition(".")[0] for name in sys.modules}
    print(json.dumps([reply.getvalue(), *(names - before)]))
    before = names
"""
"""Runs lines in one process; prints what each says and what it is the first to import."""


ERROR = "Error: no\nnone\n"
"""What every command says of the server's answer."""


class _Server(BaseHTTPRequestHandler):
    """Answers everything with an error that the commands understand."""

    def _answer(self) -> None:
        body = b'{"type": "urn:callslip:problem:not-found", "detail": "no", "advice": "none"}'
        self.send_response(404)
        self.send_header("Content-Type", "application/problem+json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_DELETE = _answer  # noqa: N815 - names of http.server

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Server) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def _imported(folder: Path, *arguments: str) -> tuple[set[str], str]:
    ran = subprocess.run(
        [sys.executable, "-c", IMPORTS, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    reply, _, names = ran.stdout.rpartition("IMPORTED")
    return set(names.split()), reply + ran.stderr


def test_a_command_that_talks_to_the_server_loads_no_part_of_it(url: str, tmp_path: Path) -> None:
    (tmp_path / "file.txt").write_text("text")
    (tmp_path / "jobs.jsonl").write_text('{"path": "file.txt"}')
    ran = subprocess.run(
        [sys.executable, "-c", EACH],
        input=json.dumps([[*line.split(), "--url", url] for line in LINES]),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    for line, printed in zip(LINES, ran.stdout.splitlines(), strict=True):
        reply, *imported = json.loads(printed)
        assert reply.endswith(ERROR), (line, reply)
        assert not {*imported} & {*HEAVY}, line


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_the_version_and_the_list_of_commands_load_nothing_but_click(
    option: str, tmp_path: Path
) -> None:
    imported, reply = _imported(tmp_path, option)
    assert "callslip" in reply
    assert "click" in imported
    assert not imported & {*HEAVY, "httpx", "pydantic", "yaml", "psutil"}


def test_up_begins_before_it_imports_what_its_parts_need() -> None:
    program = "import sys, callslip.cli.commands.installation.up, callslip.workers.up"
    names = "print(*{name.partition('.')[0] for name in sys.modules})"
    command = [sys.executable, "-c", f"{program}; {names}"]
    imported = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert "pydantic" in imported
    assert {"celery", "httpx", "numpy", "redis", "sqlalchemy"}.isdisjoint(imported)
