"""The legs of a search, and both as Weaviate fuses them."""

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from weaviate.classes.query import Filter, HybridFusion, MetadataQuery
from weaviate.collections.classes.filters import FilterReturn

from stores.fusion import Candidate, LegScore
from stores.keyword_index import MAX_QUERY_TERMS
from stores.metrics import Metric
from stores.records import LegHit, Vector
from stores.weaviate.classes import K1, TERMS, VECTORS
from stores.weaviate.connection import At
from stores.weaviate.names import vector_of

Ask = Callable[[FilterReturn | None, int], list[LegHit]]
"""Gives the n best hits of a leg among those that pass."""

_BM25 = K1 + 1
"""Weaviate leaves out this factor of BM25, which changes no order."""

_ORIGINAL = re.compile(r"Result Set (keyword|vector)[^)]*\)[^:]*: original score (\S+),")


def nearest(at: At, vector: Vector, vector_name: str, metric: Metric) -> Ask:
    """The vector leg.

    The graph of an index can lose vectors that are all alike. Where it gives fewer than were asked
    for, they are asked for anew with a filter that all pass: what few pass is compared one by one.
    """
    numbers, named = _numbers(vector), vector_of(vector_name)
    everything = Filter.by_property(VECTORS).contains_any([named])

    def ask(where: FilterReturn | None, count: int) -> list[LegHit]:
        found = at.query.near_vector(
            numbers,
            target_vector=named,
            limit=count,
            filters=where,
            return_metadata=MetadataQuery(distance=True),
            return_properties=["chunk_id"],
        ).objects
        if where is None and len(found) < count:
            return ask(everything, count)
        return [LegHit(_id(each), _score(metric, each.metadata.distance or 0.0)) for each in found]

    return ask


def by_terms(at: At, terms: str) -> Ask:
    """The keyword leg."""
    query = _query(terms)

    def ask(where: FilterReturn | None, count: int) -> list[LegHit]:
        if not query:
            return []
        found = at.query.bm25(
            query,
            query_properties=[TERMS],
            limit=count,
            filters=where,
            return_metadata=MetadataQuery(score=True),
            return_properties=["chunk_id"],
        )
        return [
            LegHit(_id(each), float(each.metadata.score or 0) * _BM25) for each in found.objects
        ]

    return ask


def fused(
    at: At,
    vector: Vector,
    terms: str,
    count: int,
    where: FilterReturn | None,
    vector_name: str,
    metric: Metric,
    alpha: float,
) -> list[Candidate]:
    """The `count` best by Weaviate's relative score fusion, ties by chunk id.

    `alpha` is the weight of the vector leg. What a leg gave is read from the explanation; its
    ranks are those among the hits that came.
    """
    found = at.query.hybrid(
        _query(terms),
        vector={vector_of(vector_name): _numbers(vector)},
        target_vector=vector_of(vector_name),
        query_properties=[TERMS],
        alpha=alpha,
        fusion_type=HybridFusion.RELATIVE_SCORE,
        limit=count,
        filters=where,
        return_metadata=MetadataQuery(score=True, explain_score=True),
        return_properties=["chunk_id"],
    )
    originals = {
        _id(each): dict(_ORIGINAL.findall(each.metadata.explain_score or ""))
        for each in found.objects
    }
    vectors = _ranks(
        # The explanation gives 1 - distance, of every metric.
        {i: _score(metric, 1 - float(o["vector"])) for i, o in originals.items() if "vector" in o}
    )
    keywords = _ranks(
        {i: float(o["keyword"]) * _BM25 for i, o in originals.items() if "keyword" in o}
    )
    candidates = [
        Candidate(i, float(each.metadata.score or 0), vectors.get(i), keywords.get(i))
        for each in found.objects
        for i in [_id(each)]
    ]
    return sorted(candidates, key=lambda each: (-each.score, each.chunk_id))


def _ranks(scores: dict[str, float]) -> dict[str, LegScore]:
    ordered = sorted(scores, key=lambda chunk_id: (-scores[chunk_id], chunk_id))
    return {i: LegScore(rank, scores[i]) for rank, i in enumerate(ordered, 1)}


def _score(metric: Metric, distance: float) -> float:
    return 1.0 - distance if metric == "cosine" else -distance


def _query(terms: str) -> str:
    """The first distinct terms, each as often as the query repeats it."""
    counted = list(Counter(terms.split()).items())[:MAX_QUERY_TERMS]
    return " ".join(term for term, count in counted for _ in range(count))


def _numbers(vector: Vector) -> list[float]:
    numbers: list[float] = np.asarray(vector, np.float32).tolist()
    return numbers


def _id(found: Any) -> str:
    return str(found.properties["chunk_id"])
