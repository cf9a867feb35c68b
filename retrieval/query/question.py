"""The input of both retrievers: terms for the keyword retriever, a vector for the vector one."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from callslip.errors import EmbedderDown, InvalidRequest
from callslip.models.embedders.contract import Embedder
from callslip.models.text.analyzer import Analyzer
from callslip.retrieval.caches import Cache
from callslip.retrieval.messages import NO_KEYWORDS, STRANGERS
from callslip.retrieval.query.plan import Plan
from callslip.retrieval.query.spacing import to_embed
from callslip.retrieval.timings import Timings
from callslip.stores.records import Vector


@dataclass(frozen=True)
class Query:
    """The input of both retrievers for one question.

    `terms` are the analyzed terms, separated by spaces. `keywords` is the input of the keyword
    retriever: the terms, perhaps with those of another spelling (`candidates.lookup.respell`), or
    the topic for an attached table, whose store analyzes words itself.
    `vector` has the shape (dimension,). `alpha` is the weight of the vector retriever, or None if
    it is chosen for the question (`candidates.fusion_weight`). It is 0 if that retriever is left
    out; `left_out` then has the reason, unless the request or the settings turned it off.
    """

    terms: str
    keywords: str
    alpha: float | None
    vector: Vector | None = None
    left_out: Mapping[str, str] = field(default_factory=dict)


def make_query(
    plan: Plan, analyzer: Analyzer, embedder: Embedder, cache: Cache[Vector], timings: Timings
) -> Query:
    """Analyze the question of a plan and embed it; `cache` has the vectors of earlier questions.

    If the embedder does not answer, the vector retriever is left out. Raises InvalidRequest if the
    collection was embedded with another model. A collection without keywords is searched by vectors
    alone: raises EmbedderDown if it cannot be, and InvalidRequest if it never can be.
    """
    terms = ""
    if plan.request.query:
        with timings.stage("analyze"):
            terms = analyzer.analyze(plan.analyzed)
    if plan.record.vectors_only:
        query = _embedded(Query(terms, "", 1.0), plan, embedder, cache, timings)
        return _by_vector_alone(query, plan)
    keywords = plan.topic if plan.record.attached else terms
    return _embedded(Query(terms, keywords, plan.parameters.alpha), plan, embedder, cache, timings)


def _by_vector_alone(query: Query, plan: Plan) -> Query:
    """The query, if it has a vector. Raises EmbedderDown, or InvalidRequest if it never has."""
    if query.vector is not None:
        return query
    reason = query.left_out.get("vector", "this installation has no embedder")
    if reason not in (STRANGERS, "this installation has no embedder"):
        raise EmbedderDown(reason)
    raise InvalidRequest(
        f"collection {plan.collection!r} cannot be searched by words: {NO_KEYWORDS}; {reason}",
        hint="Give a query_embedding of its own model; or attach it again with the `vectors` of the"
        " embedder that made them.",
    )


def _embedded(
    query: Query, plan: Plan, embedder: Embedder, cache: Cache[Vector], timings: Timings
) -> Query:
    """Return the query with its vector; without a vector only the keyword retriever answers."""
    if plan.request.query_embedding is not None:
        return replace(query, vector=np.asarray(plan.request.query_embedding, np.float32))
    if embedder.lexical_only or query.alpha == 0:
        return replace(query, alpha=0.0)
    if plan.record.attached and plan.record.embedder != embedder.model:
        return replace(query, alpha=0.0, left_out={"vector": STRANGERS})
    _check_embedder(plan, embedder.model)
    with timings.stage("embed"):
        key = embedder.model, to_embed(plan.analyzed)
        vector = cache.get(key)
        if vector is None:
            try:
                vector = embedder.query(key[1])
            except EmbedderDown as error:
                return replace(query, alpha=0.0, left_out={"vector": error.detail})
            cache.put(key, vector)
    return replace(query, vector=vector)


def _check_embedder(plan: Plan, model: str) -> None:
    name, models = plan.vector_name, plan.record.models
    if name in plan.record.schema.named and name not in models:
        raise InvalidRequest(
            f"clients provide the vectors {name!r} of collection {plan.collection!r}, so no"
            " embedder is known for its questions",
            hint="Send query_embedding, a vector of the same model.",
        )
    if models[name] != model:
        raise InvalidRequest(
            f"collection {plan.collection!r} was embedded with"
            f" {models[name]!r}, this installation runs {model!r}",
            hint=f"Run `callslip reindex {plan.collection}`, or set the embedder back.",
        )
