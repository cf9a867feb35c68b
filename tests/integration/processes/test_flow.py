"""Fairness, back-pressure and dead letters, with a real broker and real workers."""

import json
import os
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from api_calls import assert_problem
from processes import waits_until
from stack import WITHOUT_MODEL, Stack, new_home

from callslip.stores.ledger.base.fair_queue import MESSAGE_DOCUMENTS

NARROW = {"CALLSLIP_INGEST__MAX_BACKLOG": "24", "CALLSLIP_INGEST__MAX_BACKLOG_PER_TENANT": "16"}

FILES = 28
"""More than may wait at once."""

MANY = 240


@pytest.fixture(scope="module")
def narrow_stack(tmp_path_factory: pytest.TempPathFactory, models_dir: Path) -> Iterator[Stack]:
    """A stack without a model, of which few documents may wait at once."""
    home = new_home(tmp_path_factory, models_dir)
    stack = Stack(home, WITHOUT_MODEL | NARROW).start()
    yield stack
    stack.stop()


@pytest.fixture
def http(narrow_stack: Stack) -> Iterator[httpx.Client]:
    with http_of(narrow_stack) as client:
        yield client


@pytest.fixture
def halls(http: httpx.Client) -> str:
    return halls_of(http)


def http_of(stack: Stack) -> httpx.Client:
    return httpx.Client(base_url=stack.url, timeout=60, trust_env=False)


def halls_of(http: httpx.Client) -> str:
    """A collection with tenants."""
    name = f"halls-{uuid.uuid4().hex[:8]}"
    http.post("/v1/collections", json={"name": name, "tenants": True}).raise_for_status()
    return name


def send(http: httpx.Client, collection: str, **body: object) -> httpx.Response:
    text = {"text": f"A short text {uuid.uuid4().hex}.", "name": uuid.uuid4().hex}
    return http.post(f"/v1/collections/{collection}/documents", json=text | body)


def live(http: httpx.Client, collection: str, tenant: str) -> int:
    """How many of a tenant's documents are live."""
    return sum(d["state"] == "live" for d in listed(http, collection, tenant))


def listed(http: httpx.Client, collection: str, tenant: str) -> list[dict[str, Any]]:
    """A tenant's documents."""
    path = f"/v1/collections/{collection}/documents"
    found: list[dict[str, Any]] = http.get(path, params={"tenant": tenant, "limit": 500}).json()[
        "documents"
    ]
    return found


def state(http: httpx.Client, document_id: str) -> str:
    found: str = http.get(f"/v1/documents/{document_id}").json()["state"]
    return found


@pytest.mark.long
def test_a_single_document_waits_neither_for_another_tenants_many_nor_for_a_sweep(
    lexical_stack: Stack,
) -> None:
    with http_of(lexical_stack) as http:
        halls = halls_of(http)
        alone = send(http, halls, tenant="alone").json()["document_id"]
        assert waits_until(lambda: state(http, alone) == "live", 50), "it waited for a sweep"
        text = (
            "The many documents are longer. " * 130
        )  # they become live more slowly than they come
        texts = [f"{text}{n}" for n in range(MANY)]
        with ThreadPoolExecutor(8) as pool:
            sent = list(pool.map(lambda text: send(http, halls, tenant="many", text=text), texts))
        assert {answer.status_code for answer in sent} == {202}
        urgent = send(http, halls, tenant="many", priority=10).json()["document_id"]
        one = send(http, halls, tenant="one").json()["document_id"]
        assert waits_until(lambda: live(http, halls, "many") == MANY + 1, 300), "the others go on"
        for each in (urgent, one):
            document = http.get(f"/v1/documents/{each}").json()
            ends = [d["finished_at"] for d in listed(http, halls, "many")]
            later = sum(end > document["finished_at"] for end in ends)
            meanwhile = sum(end > document["submitted_at"] for end in ends) - later
            assert meanwhile < 5 * MESSAGE_DOCUMENTS  # three messages and those on their way
            assert later > 40


@pytest.mark.long
def test_a_full_backlog_is_429_with_retry_after_and_nothing_that_was_taken_is_lost(
    http: httpx.Client, halls: str
) -> None:
    refused = threading.Event()
    taken: list[str] = []

    def flood() -> None:
        with httpx.Client(base_url=http.base_url, timeout=60, trust_env=False) as mine:
            while not refused.is_set() and len(taken) < 2000:
                answer = send(mine, halls, tenant="flood")
                if answer.status_code == 202:
                    taken.append(answer.json()["document_id"])
                else:
                    assert_problem(answer, 429, "backlog-full")
                    assert int(answer.headers["Retry-After"]) > 0
                    refused.set()

    threads = [threading.Thread(target=flood) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert refused.is_set()
    assert send(http, halls, tenant="another").status_code == 202
    assert waits_until(lambda: all(state(http, i) == "live" for i in taken), 300)


@pytest.mark.long
def test_the_command_line_waits_until_there_is_room(
    http: httpx.Client, narrow_stack: Stack, halls: str, tmp_path: Path
) -> None:
    for n in range(FILES):
        (tmp_path / f"{n}.txt").write_text(f"Notice {n}: {uuid.uuid4().hex}")
    command = [str(Path(sys.executable).with_name("callslip")), "ingest", str(tmp_path), "--json"]
    done = subprocess.run(
        [*command, "-c", halls, "--tenant", "folder", "--url", narrow_stack.url],
        capture_output=True,
        env=os.environ,
        timeout=500,
        check=True,
    )
    report = json.loads(done.stdout)
    assert len(report["live"]) == FILES
    assert report["failed"] == []


@pytest.mark.long
def test_a_file_that_cannot_be_read_is_a_dead_letter_until_it_is_replaced(
    http: httpx.Client, narrow_stack: Stack
) -> None:
    name = f"papers-{uuid.uuid4().hex[:8]}"
    http.post("/v1/collections", json={"name": name}).raise_for_status()
    path = f"/v1/collections/{name}/documents"
    broken = http.post(path, files={"file": ("a.pdf", b"%PDF-1.7 and no more")}).json()
    document_id = broken["document_id"]
    assert waits_until(lambda: state(http, document_id) == "failed")
    found = http.get("/v1/dead-letters", params={"collection": name}).json()
    (letter,) = found["dead_letters"]
    assert letter["document_id"] == document_id
    assert (letter["step"], letter["attempts"], letter["crashes"]) == ("extract", 1, 0)
    assert letter["error"]["type"] == "broken-file"
    assert letter["error"]["advice"]
    none = http.get("/v1/dead-letters", params={"collection": name, "older_than": 3600}).json()
    assert none == {"dead_letters": [], "next_after": None}
    assert_problem(http.post("/v1/dead-letters/retry", json={}), 400, "invalid-request")
    assert_problem(http.get("/v1/dead-letters", params={"after": "x"}), 400, "invalid-request")
    retried = http.post("/v1/dead-letters/retry", json={"reason": "broken-file"}).json()
    assert retried == {"retried": [document_id], "more": False}
    assert waits_until(lambda: _attempts(http, name) == 2)
    ran = _callslip(narrow_stack, "status", "--failed")
    assert f"{name}  a.pdf" in ran.stdout
    assert "broken-file in step extract (2 attempts, 0 crashes)" in ran.stdout
    ran = _callslip(narrow_stack, "retry", "--reason", "no-such-reason")
    assert "0 waiting again" in ran.stdout
    ran = _callslip(narrow_stack, "retry", document_id, "f" * 32)
    assert ran.returncode == 1
    assert "has not failed" in ran.stdout
    fine = {"file": ("a.pdf.txt", b"Now it is text."), "name": (None, "a.pdf")}
    assert http.post(path, files=fine).status_code == 202
    assert waits_until(lambda: state(http, document_id) == "live")
    found = http.get("/v1/dead-letters", params={"collection": name}).json()
    assert found["dead_letters"] == []


def _attempts(http: httpx.Client, collection: str) -> int:
    found = http.get("/v1/dead-letters", params={"collection": collection}).json()
    return sum(letter["attempts"] for letter in found["dead_letters"])


def _callslip(stack: Stack, *words: str) -> "subprocess.CompletedProcess[str]":
    command = [str(Path(sys.executable).with_name("callslip")), *words, "--url", stack.url]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
