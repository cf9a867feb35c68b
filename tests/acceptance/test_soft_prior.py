"""The soft prior lifts passages of the facet values that a question is about (spec 003 §9.3).

On real pages of five domains, through the desk. It prints the effect sizes; test_harm.py has the
price, docs/facets.md both for whole sets.
"""

from collections import defaultdict
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import pytest
from judged_parts import LONGEST, Hold, Measure, Tell
from processes import waits_until

from callslip.errors import TraceNotFound
from evals.client import Desk

pytestmark = pytest.mark.timeout(LONGEST)

SET, QUESTIONS = "ko_autorag", 40

TOP = 150
"""Hits: as many as each leg gives, search.pool; who asks for more is given other candidates."""

ALONE = {"memory_weight": 0, "exploration_ratio": 0, "narrow": False}


@dataclass(frozen=True)
class Asked:
    """A question, the greatest weight of a value by facet, and the hits with their reasons."""

    query: str
    weights: dict[str, float]
    hits: list[dict[str, Any]]


@pytest.fixture(scope="module")
def asked(desk: Desk, held: Hold, measured: Measure) -> list[Asked]:
    measured(SET)  # makes the vectors of the facets
    shelf = held(SET)
    found = []
    for query in shelf.judged.at_most(QUESTIONS).queries.values():
        body = {"collection": shelf.collection, "query": query, "top": TOP, "explain": True}
        answer = desk.search({**body, "ranking": ALONE})
        weights = _weights(desk, answer["trace_id"])
        found.append(Asked(query, {f: max(w.values()) for f, w in weights.items()}, answer["hits"]))
    return found


def _weights(desk: Desk, trace_id: str) -> dict[str, dict[str, float]]:
    """Of the facets' values; a search is recorded a moment after it was answered."""
    traces: list[dict[str, Any]] = []

    def is_there() -> bool:
        try:
            traces.append(desk.get(f"/debug/trace/{trace_id}")["trace"])
        except TraceNotFound:
            return False
        return True

    assert waits_until(is_there, 10)
    weights: dict[str, dict[str, float]] = traces[0]["facet_weights"]
    return weights


def test_passages_of_the_favoured_value_rise_five_ranks_on_average(
    asked: list[Asked], tell: Tell
) -> None:
    rises = []
    for one in asked:
        of_domain = defaultdict(list)
        for hit in one.hits:
            of_domain[hit["properties"]["domain"]].append(hit)
        priors = {d: fmean(map(_prior, hits)) for d, hits in of_domain.items()}
        favoured = max(priors, key=lambda domain: priors[domain])
        if priors[favoured]:
            rises += [h["reasons"]["rank_of_content"] - h["rank"] for h in of_domain[favoured]]
    tell(f"soft prior: {len(rises)} passages of the favoured domain rise {fmean(rises):.1f} ranks")
    assert fmean(rises) >= 5


def _prior(hit: dict[str, Any]) -> float:
    return float(hit["reasons"]["parts"].get("prior", 0.0))


def test_a_shelf_that_says_nothing_is_hardly_favoured_and_the_domain_is(
    asked: list[Asked], tell: Tell
) -> None:
    domain, shelf = (fmean(a.weights.get(f, 0.0) for a in asked) for f in ("domain", "shelf"))
    tell(f"soft prior: greatest weight, mean: domain {domain:.2f}, shelf {shelf:.2f}")
    assert domain > 0.1
    assert shelf < domain / 3  # which passages stand for a value is drawn anew at each ingestion


def test_without_weight_the_ranking_is_the_same(desk: Desk, held: Hold, asked: list[Asked]) -> None:
    for one in asked[::6]:
        body = {"collection": held(SET).collection, "query": one.query, "top": 10}
        hits = desk.search({**body, "ranking": {**ALONE, "facets_weight": 0}})["hits"]
        content = {h["chunk_id"]: h["reasons"]["rank_of_content"] for h in one.hits}
        assert [content[hit["chunk_id"]] for hit in hits] == [hit["rank"] for hit in hits]
