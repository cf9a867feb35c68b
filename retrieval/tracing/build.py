"""Builds the trace of a finished search."""

from collections.abc import Mapping, Sequence
from functools import partial

from callslip.retrieval.candidates.retrieved import Retrieved
from callslip.retrieval.messages import Hit, SearchResponse
from callslip.retrieval.query.plan import Plan
from callslip.retrieval.query.question import Query
from callslip.retrieval.ranking.features import features_of
from callslip.retrieval.ranking.scored import Scored
from callslip.retrieval.ranking.stage import Ranked
from callslip.retrieval.tracing.trace import Question, Trace, TraceBranch, TraceHit

WITH_FEATURES = 40
"""The number of candidates whose features are recorded: as many as are reranked."""


def trace_of(
    plan: Plan, query: Query, retrieved: Retrieved, ranked: Ranked, response: SearchResponse
) -> Trace:
    """Return the trace of a search: the results of its stages in numbers."""
    understood = plan.understood
    by_id = {s.chunk_id: s for s in ranked.order}
    ranks = {s.chunk_id: rank for rank, s in enumerate(ranked.by_content, 1)}
    shown = [by_id[hit.parent_of or hit.chunk_id] for hit in response.hits]
    recorded = [*shown, *ranked.order[plan.top :]][:WITH_FEATURES]
    if retrieved.from_hotset:  # an answer from the hotset has no retriever results
        recorded = []
    return Trace(
        trace_id=response.trace_id,
        collection=plan.collection,
        tenant=plan.tenant,
        owner=plan.owner,
        question=Question(
            plan.request.query,
            understood.lang if understood else "",
            understood.intent if understood else "",
            understood.entities if understood else (),
            None if plan.vector_name else query.vector,
        ),
        stamp=str(retrieved.corpus_version),
        timings=response.timings,
        alpha=response.alpha,
        matched=None if response.matched is None else response.matched.model_dump(),
        fusion=response.fusion,
        hits=tuple(_hits(response.hits, by_id, ranks)),
        candidates=response.candidates,
        hotset=response.hotset,
        as_of=response.as_of.at.isoformat() if response.as_of.at else None,
        facet_weights=retrieved.weights,
        branches=tuple(
            TraceBranch(branch.facets, branch.count, branch is retrieved.branch)
            for branch in retrieved.branches
        ),
        removed={"visible": response.candidates - len(ranked.by_content)},
        left_out=response.left_out,
        explored=ranked.explored,
        basis=partial(features_of, recorded, response.alpha, plan.parameters, retrieved.scale),
    )


def _hits(
    hits: Sequence[Hit], by_id: Mapping[str, Scored], ranks: Mapping[str, int]
) -> list[TraceHit]:
    """The hits with their scores; a parent has the scores of its child that was a hit."""
    made = []
    for hit in hits:
        scored = by_id[hit.parent_of or hit.chunk_id]
        made.append(
            TraceHit(
                hit.chunk_id,
                hit.document_id,
                hit.rank,
                ranks[scored.chunk_id],
                hit.score,
                scored.parts,
                scored.candidate.vector,
                scored.candidate.keyword,
            )
        )
    return made
