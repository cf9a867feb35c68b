"""The trace of a search, made when it has run."""

from collections.abc import Sequence
from functools import partial

from retrieval.basis import bases
from retrieval.messages import Hit, SearchResponse
from retrieval.scored import Scored
from retrieval.search import Search
from retrieval.trace import Question, Trace, TraceBranch, TraceHit

BASED = 40
"""Candidates whose basis is kept: as many as are reranked."""


def trace_of(search: Search, response: SearchResponse) -> Trace:
    """What a search did, in numbers."""
    told, plan = search.understood, search.plan
    by_id = {s.chunk_id: s for s in search.ranked}
    places = {s.chunk_id: rank for rank, s in enumerate(search.content, 1)}
    shown = [by_id[hit.parent_of or hit.chunk_id] for hit in response.hits]
    # What the hotset answered says nothing of the legs.
    based = [] if search.hotset else [*shown, *search.ranked[search.top :]][:BASED]
    return Trace(
        trace_id=response.trace_id,
        collection=plan.collection,
        tenant=plan.tenant,
        question=Question(
            search.request.query,
            told.lang if told else "",
            told.intent if told else "",
            told.entities if told else (),
            None if plan.vector_name else search.vector,
        ),
        stamp=str(search.found.stamp),
        timings=response.timings,
        alpha=response.alpha,
        fusion=response.fusion,
        hits=tuple(_hits(response.hits, by_id, places)),
        candidates=response.candidates,
        hotset=response.hotset,
        as_of=response.as_of.at.isoformat() if response.as_of.at else None,
        facet_weights=search.weights,
        branches=tuple(
            TraceBranch(branch.facets, branch.count, branch is search.found.branch)
            for branch in search.found.branches
        ),
        removed={"visible": response.candidates - len(search.content)},
        left_out=response.left_out,
        explored=search.explored,
        basis=partial(bases, based, search.alpha, plan.knobs, search.found.scale),
    )


def _hits(hits: Sequence[Hit], by_id: dict[str, Scored], places: dict[str, int]) -> list[TraceHit]:
    """Of a parent the numbers are those of the hit that it came by."""
    made = []
    for hit in hits:
        scored = by_id[hit.parent_of or hit.chunk_id]
        made.append(
            TraceHit(
                hit.chunk_id,
                hit.document_id,
                hit.rank,
                places[scored.chunk_id],
                hit.score,
                scored.parts,
                scored.candidate.vector,
                scored.candidate.keyword,
            )
        )
    return made
