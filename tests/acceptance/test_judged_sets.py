"""Retrieval is as good as promised, through the whole chain and the desk, in every store."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from stack import Stack

from config.settings import Settings
from evals import beir
from evals.client import Desk
from evals.judge import evaluate
from evals.report import Report, table
from evals.stores.agreement import Question, ask, ask_copy, prepare
from models.registry import make_analyzer, make_embedder
from stores.registry import make_store

pytest_plugins = ["store_fixtures"]

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"

SLOW = os.environ.get("CALLSLIP_TEST_SLOW") == "1"
needs_time = pytest.mark.skipif(
    not SLOW, reason="embeds for minutes: set CALLSLIP_TEST_SLOW=1 to run it"
)

MOST_QUERIES = None if SLOW else 300
"""Of 1,190 in one set, which all take two minutes."""

MOST_DOCUMENTS = None if SLOW else 240
"""Of 720 in one set, which all take eight minutes to embed."""

Evaluated = Callable[[str], Report]


def part_of(folder: Path, part: Path, most: int) -> Path:
    """The judged set with the documents that answer a query, and others spread over the rest."""
    answers = {grade.split("\t")[1] for grade in (folder / "qrels.tsv").read_text().splitlines()}
    lines = (folder / "corpus.jsonl").read_text().splitlines(keepends=True)
    judged = [json.loads(line)["_id"] in answers for line in lines]
    others = [n for n, answer in enumerate(judged) if not answer]
    room = max(0, min(len(others), most - sum(judged)))
    spread = {others[n * len(others) // room] for n in range(room)}
    part.mkdir()
    kept = (line for n, line in enumerate(lines) if judged[n] or n in spread)
    (part / "corpus.jsonl").write_text("".join(kept))
    for name in ("queries.jsonl", "qrels.tsv"):
        shutil.copy(folder / name, part)
    return part


@pytest.fixture(scope="session")
def evaluated(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evaluated]:
    """Evaluates a judged set once, and keeps what it ingested until the end."""
    reports: dict[str, Report] = {}
    parts = tmp_path_factory.mktemp("parts")

    def report(name: str) -> Report:
        folder = DATA / name
        if not folder.is_dir():
            pytest.skip(f"the judged set {name} is not here: {folder}")
        if name not in reports:
            if MOST_DOCUMENTS:
                folder = part_of(folder, parts / name, MOST_DOCUMENTS)
            with Desk(stack.url) as desk:
                reports[name] = evaluate(folder, desk, most_queries=MOST_QUERIES, keep=True)
        return reports[name]

    yield report
    with Desk(stack.url) as desk:
        for found in reports.values():
            desk.delete(f"/v1/collections/{found.collection}")


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("en_xquad", {"hybrid": 0.975}),
        ("ko_autorag", {"hybrid": 0.92, "keyword": 0.92}),
        pytest.param("en_stackfaq", {"hybrid": 0.89}, marks=needs_time),
        pytest.param("en_scifact", {"hybrid": 0.71}, marks=needs_time),
    ],
)
@pytest.mark.timeout(3600)
def test_ndcg_at_10_on_a_judged_set(
    evaluated: Evaluated, name: str, least: dict[str, float]
) -> None:
    report = evaluated(name)
    reached = {leg: found.measures["ndcg@10"] for leg, found in report.legs.items()}
    short = {
        leg: reached[leg] for leg, least_of_leg in least.items() if reached[leg] < least_of_leg
    }
    assert not short, table(report)


ASKED = 40
"""Questions of each set that every store is asked."""


@dataclass(frozen=True)
class Asked:
    """Some questions of a judged set, and how well the store that ingested it answers them."""

    collection: str
    judged: beir.JudgedSet
    questions: list[Question]
    expected: dict[str, float]


@pytest.fixture(scope="session")
def asked(stack: Stack, evaluated: Evaluated) -> Callable[[str], Asked]:
    """Asks each set once, in Chroma, which the other stores are held against."""

    @cache
    def ask_once(name: str) -> Asked:
        report, judged = evaluated(name), beir.read(DATA / name, ASKED)
        questions = prepare(judged, make_embedder(stack.settings), make_analyzer())
        with closing(make_store(stack.settings, "chroma")) as source:
            expected = ask(source, report.collection, judged, questions)
        return Asked(report.collection, judged, questions, expected)

    return ask_once


@pytest.mark.parametrize("name", ["en_xquad", "ko_autorag"])
@pytest.mark.timeout(1800)
def test_a_collection_ranks_alike_wherever_it_lies(
    stack: Stack, asked: Callable[[str], Asked], place: tuple[Settings, str], name: str
) -> None:
    here = asked(name)
    with closing(make_store(stack.settings, "chroma")) as source, closing(make_store(*place)) as it:
        found = ask_copy(source, here.collection, it, here.judged, here.questions)
        legs = ("vector",) if it.keyword_score == "tfidf" else ("vector", "keyword", "hybrid")
    assert {leg: found[leg] for leg in legs} == pytest.approx(
        {leg: here.expected[leg] for leg in legs}, abs=0.01
    )
