"""The vector retriever, the keyword retriever, and Weaviate's own fusion of both."""

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from weaviate.classes.query import Filter, HybridFusion, MetadataQuery
from weaviate.collections.classes.filters import FilterReturn

from callslip.stores.fulltext.index import MAX_QUERY_TERMS
from callslip.stores.fusion import Candidate, RetrieverScore
from callslip.stores.metrics import Metric
from callslip.stores.records import RetrieverHit, Vector
from callslip.stores.weaviate.classes import K1, TERMS, VECTORS
from callslip.stores.weaviate.connection import At
from callslip.stores.weaviate.names import vector_of

Ask = Callable[[FilterReturn | None, int], list[RetrieverHit]]
"""Returns the best n hits of a retriever among the chunks that pass a filter."""

_BM25 = K1 + 1
"""Weaviate's BM25 lacks this factor, which does not change the order."""

_ORIGINAL = re.compile(r"Result Set (keyword|vector)[^)]*\)[^:]*: original score (\S+),")


def nearest(at: At, vector: Vector, vector_name: str, metric: Metric) -> Ask:
    """The vector retriever.

    The graph of an index can lose vectors that are all equal. If it returns fewer hits than
    requested, the query is repeated with a filter that all chunks pass: Weaviate compares vectors
    one by one if few chunks pass a filter.
    """
    numbers, named = _numbers(vector), vector_of(vector_name)
    everything = Filter.by_property(VECTORS).contains_any([named])

    def ask(where: FilterReturn | None, count: int) -> list[RetrieverHit]:
        results = at.query.near_vector(
            numbers,
            target_vector=named,
            limit=count,
            filters=where,
            return_metadata=MetadataQuery(distance=True),
            return_properties=["chunk_id"],
        ).objects
        if where is None and len(results) < count:
            return ask(everything, count)
        return [
            RetrieverHit(_id(each), _score(metric, each.metadata.distance or 0.0))
            for each in results
        ]

    return ask


def by_terms(at: At, terms: str) -> Ask:
    """The keyword retriever."""
    query = _query(terms)

    def ask(where: FilterReturn | None, count: int) -> list[RetrieverHit]:
        if not query:
            return []
        results = at.query.bm25(
            query,
            query_properties=[TERMS],
            limit=count,
            filters=where,
            return_metadata=MetadataQuery(score=True),
            return_properties=["chunk_id"],
        )
        return [
            RetrieverHit(_id(each), float(each.metadata.score or 0) * _BM25)
            for each in results.objects
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
    """The `count` best chunks by Weaviate's relative score fusion, ties by chunk id.

    `alpha` is the weight of the vector retriever. The scores of each retriever are read from
    Weaviate's explanation; a retriever's ranks count only the returned hits.
    """
    results = at.query.hybrid(
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
        for each in results.objects
    }
    vectors = _ranks(
        # The explanation has 1 - distance for every metric.
        {i: _score(metric, 1 - float(o["vector"])) for i, o in originals.items() if "vector" in o}
    )
    keywords = _ranks(
        {i: float(o["keyword"]) * _BM25 for i, o in originals.items() if "keyword" in o}
    )
    candidates = [
        Candidate(i, float(each.metadata.score or 0), vectors.get(i), keywords.get(i))
        for each in results.objects
        for i in [_id(each)]
    ]
    return sorted(candidates, key=lambda each: (-each.score, each.chunk_id))


def _ranks(scores: dict[str, float]) -> dict[str, RetrieverScore]:
    ordered = sorted(scores, key=lambda chunk_id: (-scores[chunk_id], chunk_id))
    return {i: RetrieverScore(rank, scores[i]) for rank, i in enumerate(ordered, 1)}


def _score(metric: Metric, distance: float) -> float:
    return 1.0 - distance if metric == "cosine" else -distance


def _query(terms: str) -> str:
    """The first MAX_QUERY_TERMS distinct terms, each as often as the query repeats it."""
    counted = list(Counter(terms.split()).items())[:MAX_QUERY_TERMS]
    return " ".join(term for term, count in counted for _ in range(count))


def _numbers(vector: Vector) -> list[float]:
    numbers: list[float] = np.asarray(vector, np.float32).tolist()
    return numbers


def _id(result: Any) -> str:
    return str(result.properties["chunk_id"])
