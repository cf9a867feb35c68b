"""The soft prior lifts passages of the facet values that a question is about (spec 003 §9.3).

On real pages of five domains, through the server. It prints the effect sizes; test_harm.py has the
price, docs/facets.md both for whole sets.
"""

from collections import defaultdict
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import pytest
from judged_parts import LONGEST, Hold, Measure, Tell, sets
from processes import waits_until

from callslip.errors import TraceNotFound
from callslip.evals.client import JsonClient

pytestmark = pytest.mark.timeout(LONGEST)

SETS = {"own_ko": 1, "ko_autorag": 5}
"""By how many ranks passages rise at least on average. The first set has 40 passages in all; the
half of them that represents the values of a facet is drawn anew at each ingestion, and six
ingestions gave rises of 2.8 to 5.4 ranks."""

MEANINGLESS = {"own_ko": 1, "ko_autorag": 1 / 3}
"""The weight of a facet without meaning is below this share of the domain's. The passages that
stand for a value are drawn anew at each ingestion: of 40 passages, chance favours some group."""

QUESTIONS = 40

TOP = 150
"""Hits: as many as each leg gives, search.pool; who asks for more is given other candidates."""

ALONE = {"memory_weight": 0, "exploration_ratio": 0, "narrow": False}


@dataclass(frozen=True)
class SearchedQuery:
    """A question, the greatest weight of a value by facet, and the hits with their reasons."""

    query: str
    weights: dict[str, float]
    hits: list[dict[str, Any]]


@pytest.fixture(scope="module", params=sets(*SETS))
def name(request: pytest.FixtureRequest) -> str:
    """Each set in turn."""
    found: str = request.param
    return found


@pytest.fixture(scope="module")
def searched(client: JsonClient, held: Hold, measured: Measure, name: str) -> list[SearchedQuery]:
    measured(name)  # makes the vectors of the facets
    loaded = held(name)
    found = []
    for query in loaded.judged.at_most(QUESTIONS).queries.values():
        body = {"collection": loaded.collection, "query": query, "top": TOP, "explain": True}
        answer = client.search({**body, "ranking": ALONE})
        weights = _weights(client, answer["trace_id"])
        found.append(
            SearchedQuery(query, {f: max(w.values()) for f, w in weights.items()}, answer["hits"])
        )
    return found


def _weights(client: JsonClient, trace_id: str) -> dict[str, dict[str, float]]:
    """Of the facets' values; a search is recorded a moment after it was answered."""
    traces: list[dict[str, Any]] = []

    def is_there() -> bool:
        try:
            traces.append(client.get(f"/debug/trace/{trace_id}")["trace"])
        except TraceNotFound:
            return False
        return True

    assert waits_until(is_there, 10)
    weights: dict[str, dict[str, float]] = traces[0]["facet_weights"]
    return weights


@pytest.mark.long
def test_passages_of_the_favoured_value_rise_five_ranks_on_average(
    searched: list[SearchedQuery], tell: Tell, name: str
) -> None:
    rises = []
    for one in searched:
        of_domain = defaultdict(list)
        for hit in one.hits:
            of_domain[hit["properties"]["domain"]].append(hit)
        priors = {d: fmean(map(_prior, hits)) for d, hits in of_domain.items()}
        favoured = max(priors, key=lambda domain: priors[domain])
        if priors[favoured]:
            rises += [h["reasons"]["rank_of_content"] - h["rank"] for h in of_domain[favoured]]
    tell(f"soft prior: {len(rises)} passages of the favoured domain rise {fmean(rises):.1f} ranks")
    assert fmean(rises) >= SETS[name]


def _prior(hit: dict[str, Any]) -> float:
    return float(hit["reasons"]["parts"].get("prior", 0.0))


def test_a_facet_without_meaning_is_hardly_favoured_and_the_domain_is(
    searched: list[SearchedQuery], tell: Tell, name: str
) -> None:
    domain, group = (fmean(a.weights.get(f, 0.0) for a in searched) for f in ("domain", "group"))
    tell(f"soft prior: greatest weight, mean: domain {domain:.2f}, group {group:.2f}")
    assert domain > 0.1
    assert group < domain * MEANINGLESS[name]


def test_without_weight_the_ranking_is_the_same(
    client: JsonClient, held: Hold, searched: list[SearchedQuery], name: str
) -> None:
    for one in searched[::6]:
        body = {"collection": held(name).collection, "query": one.query, "top": 10}
        hits = client.search({**body, "ranking": {**ALONE, "facets_weight": 0}})["hits"]
        content = {h["chunk_id"]: h["reasons"]["rank_of_content"] for h in one.hits}
        assert [content[hit["chunk_id"]] for hit in hits] == [hit["rank"] for hit in hits]
