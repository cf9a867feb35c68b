"""What helped three times with a question comes up sooner for the next like it (spec 003 §9.4).

On questions that people phrased in several ways: three phrasings teach, another one is asked before
and after. What that costs questions to other answers is in test_harm.py, for every set.
"""

from collections import defaultdict
from collections.abc import Iterator
from statistics import fmean

import pytest
from judged_parts import Held, Hold, Tell, tend
from stack import Stack

from evals.client import Desk
from evals.measures import estimate
from evals.ways import forget

SET, RUNS = "en_stackfaq", 3

DEPTH = 60
"""Hits that are looked through."""

LOW = 5
"""A passage below this rank is worth lifting."""


@pytest.fixture
def shelf(desk: Desk, held: Hold) -> Iterator[Held]:
    """Forgets at the end what was learned."""
    yield held(SET)
    forget(desk, held(SET).collection)


def test_after_three_validated_runs_of_a_similar_question_a_passage_rises_five_ranks(
    stack: Stack, desk: Desk, shelf: Held, tell: Tell
) -> None:
    phrasings = defaultdict(list)
    for query, text in shelf.judged.queries.items():
        phrasings[next(iter(shelf.judged.qrels[query]))].append(text)
    before, helpful = {}, {}
    for answer, (asked, *others) in phrasings.items():
        ranks = _ranks(desk, shelf, asked)
        low = [i for i in ranks if shelf.ids[ranks[i][1]] == answer and ranks[i][0] > LOW]
        if len(others) >= RUNS and low:
            before[asked], helpful[asked] = ranks[low[0]][0], low[0]
            _teach(desk, shelf, others[:RUNS], low[0])
    for known in ("not yet known", "known"):
        after = {asked: _ranks(desk, shelf, asked)[helpful[asked]][0] for asked in before}
        rises = estimate([before[asked] - after[asked] for asked in before])
        tell(
            f"memory: {len(before)} passages that stood at {fmean(before.values()):.1f} rise"
            f" {rises.mean:.1f} ranks [{rises.low:.1f}, {rises.high:.1f}],"
            f" {sum(before[a] == after[a] for a in before)} do not move (centre {known})"
        )
        assert rises.mean >= 5
        tend(stack)


def _ranks(desk: Desk, shelf: Held, question: str) -> dict[str, tuple[int, str]]:
    """Each hit's rank and document."""
    body = {"collection": shelf.collection, "query": question, "top": 2 * DEPTH}
    hits = desk.search({**body, "ranking": {"exploration_ratio": 0}})["hits"]
    return {hit["chunk_id"]: (hit["rank"], hit["document_id"]) for hit in hits}


def _teach(desk: Desk, shelf: Held, questions: list[str], chunk_id: str) -> None:
    """Each question is asked by another reader, who finds that this passage helped."""
    for number, question in enumerate(questions):
        body = {"collection": shelf.collection, "query": question, "top": DEPTH}
        answer = desk.search(body)
        if chunk_id in {hit["chunk_id"] for hit in answer["hits"]}:
            said = {"trace_id": answer["trace_id"], "chunk_ids": [chunk_id]}
            desk.post("/v1/feedback", {**said, "verdict": "validated", "user": f"reader {number}"})
