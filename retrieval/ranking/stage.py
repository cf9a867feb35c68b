"""The ranking stage of a search: puts the live candidates in order.

It applies proximity, the reranker, the soft prior, chunk memory and diversity, in this order. A
disabled step changes no score.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from callslip.retrieval.candidates.chunk_reader import ChunkReader
from callslip.retrieval.candidates.resources import Resources
from callslip.retrieval.candidates.retrieved import Retrieved
from callslip.retrieval.query.plan import Plan
from callslip.retrieval.query.question import Query
from callslip.retrieval.ranking.memory import Explored
from callslip.retrieval.ranking.memory_stage import remember
from callslip.retrieval.ranking.mmr import diversify
from callslip.retrieval.ranking.prior import prior
from callslip.retrieval.ranking.proximity import sequences
from callslip.retrieval.ranking.rerank import rerank
from callslip.retrieval.ranking.scored import Scored, fused, in_order
from callslip.retrieval.timings import Timings


@dataclass(frozen=True)
class Ranked:
    """The ranked candidates.

    `by_retrievers` is the order of the fused scores, `by_content` the order before prior and
    memory, `order` the final order. `explored` is the explored chunk, if there is one. `left_out`
    maps each retriever or reranker that did not answer to the reason.
    """

    by_retrievers: Sequence[Scored]
    by_content: Sequence[Scored]
    order: Sequence[Scored]
    explored: Explored | None
    left_out: Mapping[str, str]


def rank(
    resources: Resources, plan: Plan, query: Query, retrieved: Retrieved, timings: Timings
) -> Ranked:
    """Rank the live candidates; if the reranker does not answer, it is left out."""
    seen = fused(retrieved.live, "hotset" if retrieved.from_hotset else "fused")
    left_out = {**query.left_out, **retrieved.left_out}
    with timings.stage("rank"):
        near = _with_proximity(resources, plan, query, retrieved, seen)
        content, reason = _reranked(resources, plan, retrieved.reader, near, timings)
        if reason is not None:
            left_out["rerank"] = reason
        with_prior = _with_prior(resources, plan, retrieved, content)
    with timings.stage("memory"):
        ranked, explored = _with_memory(resources, plan, query, with_prior)
    order = _diverse(plan, retrieved.reader, ranked)
    return Ranked(seen, content, order, explored, left_out)


def _with_proximity(
    resources: Resources, plan: Plan, query: Query, retrieved: Retrieved, seen: list[Scored]
) -> list[Scored]:
    """Add proximity: the best candidates' terms are compared with adjacent question words."""
    weight = (1 - retrieved.weight.alpha) * plan.parameters.proximity
    calibration, terms = retrieved.calibration, query.terms
    if calibration is None or retrieved.scale is None or not weight or " " not in terms:
        return seen
    read = resources.settings.search.read
    terms_of = retrieved.reader.terms([s.chunk_id for s in seen[:read]])
    shares = sequences(terms, terms_of, calibration.idf(terms))
    head = [s.plus("proximity", weight * shares.get(s.chunk_id, 0.0)) for s in seen[:read]]
    return in_order([*head, *seen[read:]])


def _reranked(
    resources: Resources, plan: Plan, reader: ChunkReader, content: list[Scored], timings: Timings
) -> tuple[list[Scored], str | None]:
    """Rerank the best candidates; also return the reason if the reranker was left out."""
    parameters, reranker = plan.parameters, resources.reranker
    if reranker is None or not parameters.rerank or not plan.request.query:
        return content, None
    settings = resources.settings.rerank.model_copy(update={"top": parameters.rerank_top})
    head = content[: settings.top]
    chunks = reader.read([s.chunk_id for s in head])
    bodies = [chunks[s.chunk_id].body if s.chunk_id in chunks else "" for s in head]
    with timings.stage("rerank"):
        made = rerank(reranker, plan.request.query, bodies, [s.score for s in content], settings)
    if made.left_out is not None:
        return content, made.left_out
    moved = (score - s.score for s, score in zip(content, made.scores, strict=True))
    after = [s.plus("rerank", move) for s, move in zip(content, moved, strict=True)]
    return [after[at] for at in made.order], None


def _with_prior(
    resources: Resources, plan: Plan, retrieved: Retrieved, content: list[Scored]
) -> list[Scored]:
    """Add the soft prior to the candidates' scores."""
    weights = retrieved.weights
    if not weights:
        return content
    most = _unit(plan, content) * plan.parameters.facets_weight
    properties = resources.store_of(plan.record.store).properties(
        plan.collection, [s.chunk_id for s in content], weights, tenant=plan.tenant
    )
    return [s.plus("prior", prior(properties.get(s.chunk_id, {}), weights, most)) for s in content]


def _with_memory(
    resources: Resources, plan: Plan, query: Query, scored: list[Scored]
) -> tuple[list[Scored], Explored | None]:
    """Add the memory bonuses; return the candidates in order and the explored chunk."""
    intent = plan.understood.intent if plan.understood else ""
    return remember(
        resources.ledger,
        resources.settings.memory,
        plan,
        scored,
        (None if plan.vector_name else query.vector, intent),
        unit=_unit(plan, scored),
    )


def _unit(plan: Plan, content: Sequence[Scored]) -> float:
    """Return the score difference that a weight of 1 stands for.

    It is 1 for calibrated and weighted fusion, else the greatest score, because reciprocal ranks
    and a store's own scores have other scales.
    """
    if plan.parameters.fusion in ("calibrated", "weighted"):
        return 1.0
    return max((s.score for s in content), default=1.0)


def _diverse(plan: Plan, reader: ChunkReader, ranked: list[Scored]) -> list[Scored]:
    """Put the first hits in MMR order; the other candidates follow."""
    relevance = plan.parameters.mmr_lambda
    head = ranked[: max(plan.top, plan.parameters.rerank_top)]
    if relevance >= 1 or len(head) < 2:
        return ranked
    name = plan.vector_name
    chunks = reader.read([s.chunk_id for s in head])
    vectors = {i: c.named.get(name) if name else c.vector for i, c in chunks.items()}
    rows = [row for s in head if (row := vectors.get(s.chunk_id)) is not None]
    with_vector = [s for s in head if vectors.get(s.chunk_id) is not None]
    if len(with_vector) < 2:
        return ranked
    scores = [s.score for s in with_vector]
    order = diversify(scores, np.stack(rows), relevance, len(with_vector))
    first = {with_vector[at].chunk_id for at in order}
    return [*(with_vector[at] for at in order), *(s for s in ranked if s.chunk_id not in first)]
