"""The response of a search: chunks of the best candidates, their parents, and score reasons."""

import math
from collections.abc import Sequence
from functools import partial

from callslip.retrieval.candidates.chunk_reader import ChunkReader
from callslip.retrieval.candidates.fusion_weight import FusionWeight
from callslip.retrieval.candidates.resources import Resources
from callslip.retrieval.candidates.retrieved import Retrieved
from callslip.retrieval.messages import Hit, Matched, SearchResponse, TimeClamp
from callslip.retrieval.query.plan import Plan
from callslip.retrieval.query.question import Query
from callslip.retrieval.ranking.features import features
from callslip.retrieval.ranking.hits import explained, make_hit
from callslip.retrieval.ranking.parents import add_parents
from callslip.retrieval.ranking.scored import Scored
from callslip.retrieval.ranking.stage import Ranked
from callslip.retrieval.timings import Timings
from callslip.stores.ledger import NO_PAGES, Provenance


def respond(
    resources: Resources,
    plan: Plan,
    query: Query,
    retrieved: Retrieved,
    ranked: Ranked,
    timings: Timings,
) -> SearchResponse:
    """Read the chunks of the best candidates and return the response to the plan's request."""
    with timings.stage("fetch"):
        hits = _hits(resources, plan, retrieved.reader, ranked.order[: plan.top])
    alpha = retrieved.weight.alpha
    if plan.request.explain:
        of = partial(features, alpha=alpha, parameters=plan.parameters, scale=retrieved.scale)
        hits = explained(hits, ranked.by_retrievers, ranked.by_content, ranked.order, of)
    as_of, seen = plan.as_of, len(ranked.by_retrievers)
    unlimited = plan.request.top is None and resources.settings.search.top is None
    more = retrieved.from_hotset or seen > plan.top or retrieved.is_full(plan.pool)
    return SearchResponse(
        trace_id=plan.trace_id,
        collection=plan.collection,
        query=plan.request.query,
        hits=hits,
        alpha=alpha,
        matched=_matched(retrieved.weight),
        fusion=plan.parameters.fusion,
        as_of=TimeClamp(at=as_of.moment, source=as_of.source, words=as_of.words or None),
        cut=unlimited and more,
        candidates=len(retrieved.candidates),
        hotset=retrieved.from_hotset,
        partial=bool(ranked.left_out),
        left_out=dict(ranked.left_out),
        timings=timings,
    )


def _matched(weight: FusionWeight) -> Matched | None:
    if weight.matched is None or weight.of is None:
        return None
    bits, of = weight.matched / math.log(2), weight.of / math.log(2)
    return Matched(bits=round(bits, 2), of=round(of, 2))


def _hits(
    resources: Resources, plan: Plan, reader: ChunkReader, best: Sequence[Scored]
) -> list[Hit]:
    """Return the best candidates as hits, with parents if the request has a parent strategy."""
    request = plan.request
    ranked = {s.chunk_id: s for s in best}
    chunks = reader.read(list(ranked))
    order = [(chunk_id, "") for chunk_id in ranked if chunk_id in chunks]
    positions = dict(reader.positions)
    if request.parent_strategy is not None:
        parent_ids = {c.parent_id for c in chunks.values() if c.parent_id}
        seen = resources.ledger.chunks.seen(
            sorted(parent_ids), collection=plan.collection, tenant=plan.tenant
        )
        chunks |= reader.read(list(seen), seen)
        parents = {i: chunks[i].parent_id for i, _ in order if chunks[i].parent_id in seen}
        parents = {child: parent for child, parent in parents.items() if parent in chunks}
        positions |= seen
        order = add_parents([i for i, _ in order], parents, request.parent_strategy)
    versions = {at.document_id: at.version for i, _ in order if (at := positions[i]).version}
    tables, provenance = resources.pages_of(versions), resources.provenance_of(versions)
    return [
        make_hit(
            rank,
            ranked[child or i],
            chunks[i],
            child,
            request,
            tables.get(chunks[i].document_id, NO_PAGES),
            provenance.get(chunks[i].document_id, Provenance()),
        )
        for rank, (i, child) in enumerate(order, 1)
    ]
