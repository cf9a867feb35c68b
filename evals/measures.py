"""How good a ranking is: nDCG@10, Recall@10, Recall@100 and MRR@10 by `ir_measures`."""

from collections.abc import Iterable, Mapping

import ir_measures
from ir_measures import RR, R, nDCG

MEASURES = {
    "ndcg@10": nDCG @ 10,
    "recall@10": R @ 10,
    "recall@100": R @ 100,
    "mrr@10": RR @ 10,
}

Qrels = Mapping[str, Mapping[str, int]]
"""Query id to document id to grade; above 0 is relevant."""

Run = Mapping[str, Mapping[str, float]]
"""Query id to document id to score; higher is better."""


def measure(qrels: Qrels, run: Run) -> dict[str, float]:
    """The mean of each measure over all judged queries; one that found nothing counts 0."""
    found = ir_measures.calc_aggregate(MEASURES.values(), qrels, run)
    return {name: round(float(found[each]), 4) for name, each in MEASURES.items()}


def rank_documents(hits: Iterable[str]) -> dict[str, float]:
    """Score documents from the document of each passage, best passage first.

    A document stands where its best passage stands. The score is the reciprocal of that rank, as
    scores that are rounded or equal would leave the order to the measuring library.
    """
    scores: dict[str, float] = {}
    for rank, document_id in enumerate(hits, 1):
        scores.setdefault(document_id, 1 / rank)
    return scores
