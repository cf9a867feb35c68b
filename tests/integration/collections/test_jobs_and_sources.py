"""Manifests, single steps, probes and sources on a running Callslip."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from processes import waits_until
from stack import WITHOUT_MODEL, MakeStack, Stack
from terminal import invoke

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = str(Path(sys.executable).with_name("callslip"))

MANY = 40
"""Files of a manifest, so that it can be stopped before all are sent."""

Cli = Callable[..., Any]


@pytest.fixture
def collection() -> str:
    """A name of this test's own."""
    return f"test-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def cli(stack: Stack) -> Cli:
    """Runs a command beside the running stack; its JSON, or its error's text."""
    return partial(call, stack)


def call(stack: Stack, *arguments: str, code: int = 0) -> Any:
    """What a command says, as JSON where it succeeded."""
    done = invoke(stack, *arguments, "--json")
    return said(arguments, done.exit_code, code, done.stdout, done.stderr)


def call_process(stack: Stack, *arguments: str, code: int = 0) -> Any:
    """The same by the program."""
    done = subprocess.run(
        (PROGRAM, *arguments, "--json"),
        env=stack.environ,
        cwd=stack.data_dir,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    return said(arguments, done.returncode, code, done.stdout, done.stderr)


def said(arguments: tuple[str, ...], got: int, code: int, output: str, errors: str) -> Any:
    assert got == code, f"{arguments}: {got}\n{output}\n{errors}"
    return json.loads(output) if output.strip() else errors


def documents(stack: Stack, collection: str) -> dict[str, dict[str, Any]]:
    """Every document of a collection by its name; none where it is not there."""
    answer = httpx.get(
        f"{stack.url}/v1/collections/{collection}/documents?limit=500", trust_env=False
    )
    found = answer.json()["documents"] if answer.is_success else []
    return {document["name"]: document for document in found}


def write_manifest(folder: Path, count: int, **fields: Any) -> Path:
    """A manifest of so many small files beside it."""
    lines = []
    for number in range(count):
        file = folder / f"n{number:03}.txt"
        file.write_text(f"Paragraph {number} about subject number {number}.\n" * 3)
        lines.append(json.dumps({"path": file.name, **fields}))
    manifest = folder / "manifest.jsonl"
    manifest.write_text("\n".join(lines))
    return manifest


@pytest.mark.long
def test_the_commands_of_the_specification_one_after_the_other(cli: Cli, collection: str) -> None:
    path = str(ROOT / "examples" / "documents" / "travel-expenses-policy.docx")
    output = ("--doc-type", "policy", "--jurisdiction", "KR", "--lang", "en")
    dates = ("--valid-from", "2025-01-01", "--valid-to", "2026-07-01")
    register = ("ingest", "register-source", "--path", path, *output, *dates, "-c", collection)
    first = cli(*register)
    assert (first["outcome"], first["step"], first["state"]) == ("accepted", "extract", "done")
    assert first["counts"]["chars"] > 1000
    assert len(first["sha256"]) == 64
    document_id = first["document_id"]
    for step, of in (
        ("sectionize", "sections"),
        ("chunk", "chunks"),
        ("enrich", "chunks"),
        ("embed", "vectors"),
        ("upsert", "chunks"),
    ):
        for _ in range(2):
            found = cli("ingest", step, "--doc-id", document_id)
            assert (found["state"], found["version"], found["attempts"]) == ("done", 1, 1)
            assert found["counts"][of] >= 1
    cut = ("ingest", "chunk", "--doc-id", document_id, "--maxlen", "120", "--overlap", "20")
    shown = cli(*cut)
    assert shown["then"]["longest"] <= 120 < shown["now"]["longest"]
    assert cli(*cut, "--apply")["version"] == 2
    assert (
        cli("ingest", "upsert", "--doc-id", document_id)["counts"]["chunks"]
        == (shown["then"]["chunks"])
    )
    checks = cli("verify", "sanity", "--doc-id", document_id)["checks"]
    results = {check["check"]: check["result"] for check in checks}
    assert set(results.values()) == {"ok"}, checks
    assert {"words", "meaning", "filter doc_type", "time valid_from", "time valid_to"} <= set(
        results
    )
    assert cli(*register)["outcome"] == "unchanged"


def test_a_step_that_cannot_be_done_says_why(cli: Cli, collection: str, tmp_path: Path) -> None:
    broken = tmp_path / "broken.pdf"
    broken.write_bytes(b"%PDF-1.7\nthis is no PDF")
    output = cli("ingest", "register-source", "--path", str(broken), "-c", collection, code=1)
    assert "Error: " in output
    assert "does not exist" in cli("ingest", "chunk", "--doc-id", "0" * 32, code=1)


def test_probes_fail_for_what_is_not_found(cli: Cli, stack: Stack, collection: str) -> None:
    api = httpx.Client(base_url=stack.url, timeout=30, trust_env=False)
    with api:
        api.post("/v1/collections", json={"name": collection})
        sent = api.post(
            f"/v1/collections/{collection}/documents", json={"name": "a", "text": "A short text."}
        ).json()
        document_id = sent["document_id"]
        cli("ingest", "upsert", "--doc-id", document_id)
        assert all(
            check["result"] != "FAIL"
            for check in cli("verify", "sanity", "--doc-id", document_id)["checks"]
        )
        api.delete(f"/v1/documents/{document_id}")
    checks = cli("verify", "sanity", "--doc-id", document_id, code=1)["checks"]
    assert [check["result"] for check in checks] == ["FAIL"]


def test_a_manifest_says_what_it_would_change_and_changes_it_once(
    cli: Cli, stack: Stack, collection: str, tmp_path: Path
) -> None:
    manifest = write_manifest(tmp_path, 6, collection=collection, doc_type="note")
    (tmp_path / "n005.txt").unlink()
    (tmp_path / "n004.txt").write_bytes((tmp_path / "n003.txt").read_bytes())
    run = ("jobs", "run", str(manifest))
    dry = cli(*run, "--dry-run", code=1)
    assert dry["states"] == {"new": 4, "duplicate": 1, "missing": 1}
    assert dry["failed"][0]["line"] == 6
    assert documents(stack, collection) == {}
    done = cli(*run, code=1)
    assert (done["live"], [one["type"] for one in done["failed"]]) == (4, ["missing-file"])
    found = documents(stack, collection)
    assert set(found) == {f"n{number:03}.txt" for number in range(4)}
    assert found["n000.txt"]["properties"] == {"doc_type": "note"}
    (tmp_path / "n005.txt").write_text("It is here now.")
    (tmp_path / "n000.txt").write_text("It is another text now.")
    expected = {"new": 1, "changed": 1, "unchanged": 3, "duplicate": 1}
    assert cli(*run, "--dry-run")["states"] == expected
    assert cli(*run)["states"] == expected
    assert cli(*run)["states"] == {"unchanged": 5, "duplicate": 1}
    assert documents(stack, collection)["n000.txt"]["version"] == 2


def test_a_wrong_manifest_sends_nothing(
    cli: Cli, stack: Stack, collection: str, tmp_path: Path
) -> None:
    manifest = write_manifest(tmp_path, 2, collection=collection)
    contrary = {"path": "n001.txt", "name": "n000.txt", "collection": collection}
    with manifest.open("a") as file:
        file.write("\n" + json.dumps(contrary))
    output = cli("jobs", "run", str(manifest), code=1)
    assert "manifest.jsonl:3: 'n000.txt' stands in line 1 already" in output
    names = httpx.get(f"{stack.url}/v1/collections", trust_env=False).json()["collections"]
    assert collection not in {found["name"] for found in names}


@pytest.mark.long
@pytest.mark.parametrize("kill", [signal.SIGKILL, signal.SIGINT])
def test_a_stopped_manifest_goes_on_and_does_nothing_twice(
    lexical_stack: Stack, collection: str, tmp_path: Path, kill: signal.Signals
) -> None:
    stack = lexical_stack
    manifest = write_manifest(tmp_path, MANY, collection=collection)
    with subprocess.Popen(
        (PROGRAM, "jobs", "run", str(manifest)),
        env=stack.environ,
        cwd=stack.data_dir,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert waits_until(lambda: _sent(stack, collection) >= 5, 60)
        os.kill(process.pid, kill)
        process.wait()
    done = call(stack, "jobs", "run", str(manifest))
    assert done["failed"] == []
    found = documents(stack, collection)
    assert len(found) == MANY
    assert {document["state"] for document in found.values()} == {"live"}
    assert {document["version"] for document in found.values()} == {1}
    attempts = {step["attempts"] for document in found.values() for step in document["steps"]}
    assert attempts == {1}, "no step was done twice"


def _sent(stack: Stack, collection: str) -> int:
    return len(documents(stack, collection))


@pytest.mark.long
def test_a_watched_folder_is_followed_by_the_workers(
    cli: Cli, stack: Stack, collection: str, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("The first text of the folder.")
    (tmp_path / "b.txt").write_text("The second text of the folder.")
    watched = ("--every", "5s", "--delete-missing", "-p", "doc_type=note")
    cli("source", "add", "box", str(tmp_path), "-c", collection, *watched)
    assert waits_until(lambda: _live(stack, collection) == {"box/a.txt", "box/b.txt"}, 90)
    (tmp_path / "b.txt").unlink()
    (tmp_path / "c.txt").write_text("A third text came later.")
    assert waits_until(lambda: _live(stack, collection) == {"box/a.txt", "box/c.txt"}, 90)
    found = documents(stack, collection)["box/a.txt"]
    assert (found["version"], found["properties"]["doc_type"]) == (1, "note")
    (listed,) = [s for s in cli("source", "list") if s["collection"] == collection]
    assert (listed["name"], listed["url"]) == ("box", f"file://{tmp_path}")
    cli("source", "remove", "box", "-c", collection, "--documents")
    assert waits_until(lambda: documents(stack, collection) == {}, 60)
    assert "has no source" in cli("source", "sync", "box", "-c", collection, code=1)


def _live(stack: Stack, collection: str) -> set[str]:
    found = documents(stack, collection)
    return {name for name, document in found.items() if document["state"] == "live"}


@contextmanager
def web(folder: Path) -> Iterator[str]:
    """A web server over a folder."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Nothing on the terminal."""

    handler = partial(Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.long
def test_a_page_inside_the_network_is_refused_and_says_which_setting_allows_it(
    stack: Stack, collection: str, tmp_path: Path
) -> None:
    cli = partial(call_process, stack)
    (tmp_path / "page.html").write_text("<p>inside</p>")
    with web(tmp_path) as url:
        cli("source", "add", "page", f"{url}/page.html", "-c", collection)
        found = cli("source", "sync", "page", "-c", collection, code=1)
    assert found["failures"][0]["type"] == "address-not-allowed"
    assert "sources.allow_networks" in found["failures"][0]["advice"]


@pytest.mark.long
def test_a_page_and_a_large_folder_are_synced_in_slices_that_survive_a_kill(
    make_stack: MakeStack, tmp_path: Path
) -> None:
    stack = make_stack(
        {
            "CALLSLIP_SOURCES__ALLOW_NETWORKS": "127.0.0.0/8",
            "CALLSLIP_SOURCES__SLICE_SECONDS": "0.2",
            "CALLSLIP_INGEST__LEASE_SECONDS": "6",
            "CALLSLIP_INGEST__SWEEP_SECONDS": "1",
            "CALLSLIP_INGEST__RESEND_SECONDS": "4",
        }
        | WITHOUT_MODEL
    ).start()
    cli = partial(call, stack)
    same = {"unchanged": 1}
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "page.html").write_text("<h1>Rates</h1><p>A night costs 90.</p>")
    with web(tmp_path / "web") as url:
        cli("source", "add", "rates", f"{url}/page.html", "-c", "papers", "-p", "doc_type=rates")
        assert cli("source", "sync", "rates", "-c", "papers")["counts"] in ({"new": 1}, same)
        assert cli("source", "sync", "rates", "-c", "papers")["counts"] == same
        time.sleep(1.1)  # Last-Modified counts in seconds
        (tmp_path / "web" / "page.html").write_text("<h1>Rates</h1><p>A night costs 95.</p>")
        assert cli("source", "sync", "rates", "-c", "papers")["counts"] == {"changed": 1}
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(24):
        (folder / f"n{number:03}.txt").write_text(f"Text number {number} of the folder.")
    cli("source", "add", "many", str(folder), "-c", "papers")
    assert waits_until(lambda: _sent(stack, "papers") >= 6, 60)
    stack.kill("ingest")
    stack.wait_until_back("ingest")
    counts = cli("source", "sync", "many", "-c", "papers")["counts"]
    assert sum(counts.values()) == 24
    assert set(counts) <= {"new", "unchanged"}
    assert waits_until(lambda: len(_live(stack, "papers")) == 25, 120)
    versions = {
        d["version"] for n, d in documents(stack, "papers").items() if n != "rates/page.html"
    }
    assert versions == {1}
    (folder / "n000.txt").unlink()
    counts = cli("source", "sync", "many", "-c", "papers", "--delete-missing")["counts"]
    assert counts == {"unchanged": 23, "deleted": 1}
    box = tmp_path / "box"
    box.mkdir()
    (box / "a.txt").write_text("A text of one tenant.")
    cli("source", "add", "box", str(box), "-c", "rooms", "--tenant", "one")
    cli("source", "sync", "box", "-c", "rooms", "--tenant", "one")
    assert waits_until(lambda: _live(stack, "rooms") == {"box/a.txt"}, 60)
    assert documents(stack, "rooms")["box/a.txt"]["tenant"] == "one"
