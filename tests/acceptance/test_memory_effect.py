"""What helped three times with a question comes up sooner for the next like it (spec 003 §9.4).

On questions that people phrased in several ways: of one phrasing a passage below the fifth is
taken, three others validate it, and the first is asked again. What memory costs questions to other
answers is in test_harm.py; docs/memory.md has the lift of passages that are judged right.
"""

from collections import defaultdict
from collections.abc import Iterator
from itertools import cycle
from statistics import fmean

import pytest
from judged_parts import LONGEST, Held, Hold, Tell, sets, tend
from stack import Stack

from callslip.evals.client import JsonClient
from callslip.evals.measures import estimate
from callslip.evals.variants import forget

pytestmark = pytest.mark.timeout(LONGEST)

SETS, RUNS = ("own_en", "en_stackfaq"), 3

STOOD_AT = range(6, 21)
"""Where passages stand before, one of each rank in turn."""

ANSWERS, DEPTH = 30, 60
"""Questions that are asked, and the hits that are looked through."""


@pytest.fixture(params=sets(*SETS))
def loaded(request: pytest.FixtureRequest, client: JsonClient, held: Hold) -> Iterator[Held]:
    """Forgets at the end what was learned."""
    yield held(request.param)
    forget(client, held(request.param).collection)


@pytest.mark.long
def test_after_three_validated_runs_of_a_similar_question_a_passage_rises_five_ranks(
    stack: Stack, client: JsonClient, loaded: Held, tell: Tell
) -> None:
    phrasings = defaultdict(list)
    for query, text in loaded.judged.queries.items():
        phrasings[next(iter(loaded.judged.qrels[query]))].append(text)
    helpful, before = {}, {}
    several = [p for p in phrasings.values() if len(p) > RUNS][:ANSWERS]
    for (phrasing, *others), rank in zip(several, cycle(STOOD_AT), strict=False):
        helpful[phrasing], before[phrasing] = (
            _hits(client, loaded, phrasing)[rank - 1],
            rank,
        )
        _teach(client, loaded, others[:RUNS], helpful[phrasing])
    tend(stack)
    after = {
        phrasing: _hits(client, loaded, phrasing).index(i) + 1 for phrasing, i in helpful.items()
    }
    rises = [before[phrasing] - rank for phrasing, rank in after.items()]
    found = estimate(rises)
    tell(
        f"memory: {len(rises)} passages from rank {fmean(before.values()):.1f} on average rise"
        f" {found.mean:.1f} [{found.low:.1f}, {found.high:.1f}], {rises.count(0)} do not move"
    )
    assert found.mean >= 5


def _hits(client: JsonClient, loaded: Held, question: str) -> list[str]:
    """The ids of the passages, best first."""
    body = {"collection": loaded.collection, "query": question, "top": DEPTH}
    hits = client.search({**body, "ranking": {"exploration_ratio": 0}})["hits"]
    return [hit["chunk_id"] for hit in hits]


def _teach(client: JsonClient, loaded: Held, questions: list[str], chunk_id: str) -> None:
    """Each question is asked by another reader, who finds that this passage helped."""
    for number, question in enumerate(questions):
        body = {"collection": loaded.collection, "query": question, "top": DEPTH}
        answer = client.search(body)
        if chunk_id in {hit["chunk_id"] for hit in answer["hits"]}:
            reply = {"trace_id": answer["trace_id"], "chunk_ids": [chunk_id]}
            client.post(
                "/v1/feedback", {**reply, "verdict": "validated", "user": f"reader {number}"}
            )
