"""Measures of a ranking: nDCG@10, Recall@10, Recall@100 and MRR@10 by `ir_measures`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import ir_measures
import numpy as np
from ir_measures import RR, R, Success, nDCG

MEASURES = {
    "ndcg@10": nDCG @ 10,
    "recall@10": R @ 10,
    "recall@100": R @ 100,
    "mrr@10": RR @ 10,
}

EACH = MEASURES | {"success@1": Success @ 1}
"""The measures of each single query."""

RESAMPLES, SEED = 1000, 20261122

Qrels = Mapping[str, Mapping[str, int]]
"""Query id to document id to grade; above 0 is relevant."""

Run = Mapping[str, Mapping[str, float]]
"""Query id to document id to score; higher is better."""


def measure(qrels: Qrels, run: Run) -> dict[str, float]:
    """Return the mean of each measure over all judged queries; a query without hits counts 0."""
    aggregate = ir_measures.calc_aggregate(MEASURES.values(), qrels, run)
    return {name: round(float(aggregate[each]), 4) for name, each in MEASURES.items()}


def measure_each(qrels: Qrels, run: Run) -> dict[str, dict[str, float]]:
    """Return each measure of EACH by query; a query without hits has 0."""
    per_query: dict[str, dict[str, float]] = {name: {} for name in EACH}
    names = {measure: name for name, measure in EACH.items()}
    for each in ir_measures.iter_calc(EACH.values(), qrels, run):
        per_query[names[each.measure]][each.query_id] = float(each.value)
    return per_query


@dataclass(frozen=True)
class Estimate:
    """A mean over queries with its 95 % confidence interval."""

    mean: float
    low: float
    high: float


def estimate(values: Sequence[float]) -> Estimate:
    """The mean of one value per query with its percentile bootstrap interval.

    Queries are drawn with replacement RESAMPLES times, from a fixed seed (Efron and Tibshirani
    1993, chapter 13). To compare two variants, pass the difference of each query (paired), because
    both fail on the same hard queries. Raises ValueError without a value.
    """
    if not values:
        raise ValueError("no value to estimate a mean from")
    sample = np.asarray(values, np.float64)
    draws = np.random.default_rng(SEED).integers(len(sample), size=(RESAMPLES, len(sample)))
    low, high = np.percentile(sample[draws].mean(axis=1), (2.5, 97.5))
    return Estimate(float(sample.mean()), float(low), float(high))


def compare_with_half(
    ndcg: Mapping[str, Mapping[str, float]], hybrid: str, halves: Sequence[str]
) -> tuple[str, Estimate] | None:
    """Return the better half, and what hybrid search gains over it (paired by query).

    `ndcg` maps a variant to a map from query to nDCG@10; all variants have the same queries.
    Returns None if a variant is missing. Raises ValueError without a query.
    """
    if not {hybrid, *halves} <= ndcg.keys():
        return None
    better = max(halves, key=lambda half: fmean(ndcg[half].values()))
    return better, estimate([value - ndcg[better][q] for q, value in ndcg[hybrid].items()])


def rank_documents(hits: Iterable[str]) -> dict[str, float]:
    """Score documents from the document of each passage, best passage first.

    A document has the rank of its best passage. The score is the reciprocal of that rank, because
    the measuring library would order rounded or equal scores itself.
    """
    scores: dict[str, float] = {}
    for rank, document_id in enumerate(hits, 1):
        scores.setdefault(document_id, 1 / rank)
    return scores
