"""A data folder of commit 6253ab1 is migrated and answers as that commit did.

The folder and the recorded answers are in tests/data/ledger-6253ab1; its README says what is there.
"""

import json
import os
import re
import sqlite3
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from stack import MakeStack, Stack

DATA = Path(__file__).parents[2] / "data" / "ledger-6253ab1"
DOCS = Path(__file__).parents[3] / "docs"
EXPECTED = json.loads((DATA / "expected.json").read_text(encoding="utf-8"))

TOLERANCE = 1e-3
"""Of scores: where the processor multiplies bf16, the embedder's fourth digit differs."""

MEMORY_TOLERANCE = 1e-2
"""Of the bonus of memory, for which a question that is nearly the same counts more: with bf16 it is
.3738 instead of .3766."""

RATES = ("<documents_per_minute>", "<chunks_per_minute>")
"""Of the last five minutes; null after that."""


ADDED = (
    *("matched", "pages", "boxes", "readers", "warnings", "url", "source_url", "language", "etag"),
    *("edited", "vectors", "analyzer", "facets", "apply_proposals", "valid_from_default"),
    *("origin", "chunking", "corrections_added", "valid_from", "valid_to", "not_in_force"),
    "within",
)
"""Fields that answers did not have."""

CHANGED = (
    "GET /v1/collections/handbook/memory \n    /changes: 10 became 11",
    "GET /v1/documents/041de8b7866847d8b774bc413ec444d3 \n    /live_version: 1 became None",
    "POST /v1/answer {'collection': 'handbook', 'question': '신청은 언제까지 하나요?',"
    " 'thread_id': 'grant'}"
    "\n    /citations/0/heading: '출산장려금 지급 조례' became '제3조(신청)'",
    *(
        f"POST /v1/answer {{'collection': 'handbook', 'question': {question}}}"
        f"\n    {path}confidence: {before} became {after}"
        for question, before, after in (
            ("'how long is parental leave?'", 0.78, 0.5907),
            ("'신청은 언제까지 하나요?', 'thread_id': 'grant'", 0.99, 0.9759),
        )
        for path in ("/verdict/", "/attempts/0/verdict/")
    ),
)
"""Revision 2 weighs approvals anew, which is one more change of the memory; a deleted document has
no live version; a citation is headed by
the nearest heading above its sentence; the confidence is a probability where half of the questions
have an answer, no more where three quarters have one."""


def comparable(value: Any) -> Any:
    """A body without what differs each time, as the recorded ones are."""
    if isinstance(value, dict):
        if value.get("source") == "default" and "at" in value:
            value = value | {"at": "<now>"}
        volatile = EXPECTED["volatile"]
        return {
            key: f"<{key}>" if key in volatile and each is not None else comparable(each)
            for key, each in value.items()
        }
    return [comparable(each) for each in value] if isinstance(value, list) else value


def differences(expected: Any, actual: Any, path: str = "") -> Iterator[str]:
    """Where two bodies differ, each as a path with both values."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in [*expected, *(actual.keys() - expected.keys() - set(ADDED))]:
            yield from differences(
                expected.get(key, "(not there)"), actual.get(key, "(not there)"), f"{path}/{key}"
            )
    elif isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        for number, pair in enumerate(zip(expected, actual, strict=True)):
            yield from differences(*pair, path=f"{path}/{number}")
    elif isinstance(expected, float) and isinstance(actual, int | float):
        most = MEMORY_TOLERANCE if path.endswith("/basis/memory") else TOLERANCE
        if actual != pytest.approx(expected, rel=most, abs=most):
            yield f"{path}: {expected} became {actual}"
    elif expected != actual and expected not in RATES:
        yield f"{path}: {expected!r} became {actual!r}"


def body_of(response: httpx.Response, path: str) -> Any:
    if "ndjson" in response.headers["content-type"]:
        return comparable([json.loads(line) for line in response.text.splitlines()])
    body = response.json()
    if "/conversations/" in path:
        for turn in body["turns"]:
            turn["at"] = "<at>"
    return comparable(body)


@pytest.fixture
def upgraded(make_stack: MakeStack) -> Stack:
    """Today's code over a copy of the folder."""
    stack = make_stack(EXPECTED["settings"])
    with tarfile.open(DATA / "ledger-6253ab1.tar.xz") as archive:
        archive.extractall(stack.data_dir, filter="data")
    for part in (stack.data_dir / "ledger-6253ab1").iterdir():
        part.rename(stack.data_dir / part.name)
    (copy,) = commands("cp -a var var")
    type_in(stack, copy)
    return stack.start()


def commands(*starts: str) -> list[str]:
    """The commands of the chapter of upgrades that begin with one of these, in its order."""
    text = (DOCS / "operations.md").read_text(encoding="utf-8")
    chapter = text.partition("## Upgrades")[2].partition("\n## ")[0]
    blocks = re.findall("```sh\n(.*?)```", chapter, flags=re.DOTALL)
    lines = [line.partition("#")[0].strip() for line in "".join(blocks).splitlines()]
    return [line for line in lines if line.startswith(starts)]


def type_in(stack: Stack, command: str) -> None:
    """Run a command of the chapter, whose `var` is the stack's data folder."""
    data_dir = stack.data_dir.name
    here = command.replace("var", data_dir)
    done = subprocess.run(
        ["/bin/sh", "-ec", here.replace("reindex main", "reindex handbook")],
        cwd=stack.data_dir.parent,
        env=stack.environ
        | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        | {"CALLSLIP_SEARCH__TIMEOUT_SECONDS": "2"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}: {done.stdout} {done.stderr}"


@pytest.mark.long
def test_a_ledger_of_6253ab1_answers_the_same(upgraded: Stack) -> None:
    problems = []
    with httpx.Client(base_url=upgraded.url, timeout=180, trust_env=False) as http:
        for answer in EXPECTED["answers"]:
            request = answer["request"]
            path = request["path"]
            response = http.request(request["method"], path, json=request.get("json"))
            assert response.status_code == answer["status"], f"{path}: {response.text}"
            named = f"{request['method']} {path} {request.get('json', '')}"
            different = list(differences(answer["body"], body_of(response, path)))
            problems += [f"{named}\n    {each}" for each in different]
    assert sorted(problems) == sorted(CHANGED), "\n".join(problems)
    for name in ("ledger", "conversations"):
        with closing(sqlite3.connect(upgraded.data_dir / f"{name}.db")) as database:
            rows = database.execute(f"SELECT version_num FROM {name}_revision").fetchall()
        assert len(rows) == 1
    typed = commands("callslip doctor", "callslip audit", "callslip reindex main")
    assert len(set(typed)) == 3
    for command in typed:
        type_in(upgraded, command)
    with httpx.Client(base_url=upgraded.url, timeout=60, trust_env=False) as http:
        request = {"collection": "handbook", "query": "how long is parental leave?"}
        assert http.post("/v1/search", json=request).json()["hits"]
    upgraded.stop()
    back = commands("mv var", "cp -a var.before")
    assert len(back) == 2
    for command in back:
        type_in(upgraded, command)
    with closing(sqlite3.connect(upgraded.data_dir / "ledger.db")) as database:
        rows = database.execute("SELECT name FROM sqlite_master WHERE name = 'ledger_revision'")
        assert rows.fetchall() == []
