"""What helped three times with a question comes up sooner for the next like it (spec 003 §9.4).

On questions that people phrased in several ways: to one phrasing the tenth passage is taken, three
others validate it, and the first is asked again. What memory costs questions to other answers is in
test_harm.py, for every set; docs/memory.md has the lift of passages that are judged right.
"""

from collections import defaultdict
from collections.abc import Iterator

import pytest
from judged_parts import Held, Hold, Tell, tend
from stack import Stack

from evals.client import Desk
from evals.measures import estimate
from evals.ways import forget

SET, RUNS = "en_stackfaq", 3

STOOD_AT, DEPTH = 10, 60
"""Where a passage stands before, and how many hits are looked through for it."""

ANSWERS = 30


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
    helpful = {}
    for asked, *others in [p for p in phrasings.values() if len(p) > RUNS][:ANSWERS]:
        helpful[asked] = _hits(desk, shelf, asked)[STOOD_AT - 1]
        _teach(desk, shelf, others[:RUNS], helpful[asked])
    memory = f"/v1/collections/{shelf.collection}/memory"
    for _ in range(2):
        centre = desk.get(memory, limit=1)["centre_of"]
        ranks = [_hits(desk, shelf, asked).index(i) + 1 for asked, i in helpful.items()]
        rises = estimate([STOOD_AT - rank for rank in ranks])
        tell(
            f"memory: {len(ranks)} passages rise from rank {STOOD_AT} by {rises.mean:.1f}"
            f" [{rises.low:.1f}, {rises.high:.1f}], {ranks.count(STOOD_AT)} do not move;"
            f" centre of {centre} questions"
        )
        assert rises.mean >= 5
        tend(stack)


def _hits(desk: Desk, shelf: Held, question: str) -> list[str]:
    """The ids of the passages, best first."""
    body = {"collection": shelf.collection, "query": question, "top": DEPTH}
    hits = desk.search({**body, "ranking": {"exploration_ratio": 0}})["hits"]
    return [hit["chunk_id"] for hit in hits]


def _teach(desk: Desk, shelf: Held, questions: list[str], chunk_id: str) -> None:
    """Each question is asked by another reader, who finds that this passage helped."""
    for number, question in enumerate(questions):
        body = {"collection": shelf.collection, "query": question, "top": DEPTH}
        answer = desk.search(body)
        if chunk_id in {hit["chunk_id"] for hit in answer["hits"]}:
            said = {"trace_id": answer["trace_id"], "chunk_ids": [chunk_id]}
            desk.post("/v1/feedback", {**said, "verdict": "validated", "user": f"reader {number}"})
