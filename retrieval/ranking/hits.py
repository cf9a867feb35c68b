"""The hits of a response, and the reasons for their ranks."""

from collections.abc import Callable, Sequence

from callslip.retrieval.messages import Hit, Leg, Legs, Pages, Reasons, SearchRequest, Span
from callslip.retrieval.ranking.features import Features
from callslip.retrieval.ranking.scored import Scored
from callslip.stores.fusion import RetrieverScore
from callslip.stores.ledger import PageTable, Provenance
from callslip.stores.records import StoredChunk, public
from callslip.vocabulary import DEFAULT_VECTOR


def _retriever(score: RetrieverScore | None) -> Leg | None:
    return None if score is None else Leg(rank=score.rank, score=round(score.score, 6))


def make_hit(
    rank: int,
    scored: Scored,
    chunk: StoredChunk,
    child: str,
    request: SearchRequest,
    table: PageTable,
    provenance: Provenance,
) -> Hit:
    """Return a hit; a parent has the score and the ranks of the child chunk `child`.

    `table` has the pages of its document.
    """
    name = request.vector_name
    vectors = dict(chunk.named) if chunk.vector is None else {"": chunk.vector, **chunk.named}
    if not request.include_vector:  # the vectors may have been read for MMR
        vectors = {}
    vector = vectors.get(name or "")
    return Hit(
        rank=rank,
        score=round(scored.score, 6),
        chunk_id=chunk.chunk_id,
        document_id=chunk.document_id,
        title=chunk.title,
        filename=chunk.filename,
        section=chunk.section,
        heading=chunk.heading,
        text=chunk.body,
        span=Span(start=chunk.start, end=chunk.end),
        pages=pages_of(table, chunk.start, chunk.end),
        source_url=provenance.url or None,
        within=provenance.within or None,
        lang=chunk.lang,
        properties=public(chunk.properties),
        legs=Legs(
            vector=_retriever(scored.candidate.vector), keyword=_retriever(scored.candidate.keyword)
        ),
        level=chunk.level,
        parent_id=chunk.parent_id or None,
        parent_of=child or None,
        vector=None if vector is None else vector.tolist(),
        vectors={n or DEFAULT_VECTOR: v.tolist() for n, v in vectors.items()}
        if vectors.keys() - {""}
        else None,
    )


def pages_of(table: PageTable, start: int, end: int) -> Pages | None:
    """Return the pages of a span of the document's text; None if they are unknown."""
    pages = table.of(start, end)
    if pages is None:
        return None
    return Pages(unit=pages.unit, first=pages.first, last=pages.last, labels=list(pages.labels))


def explained(
    hits: list[Hit],
    seen: Sequence[Scored],
    content: Sequence[Scored],
    ranked: Sequence[Scored],
    features: Callable[[Scored], Features],
) -> list[Hit]:
    """Return the hits with the parts and features of their scores.

    `seen` has the candidates in the order of the fused scores, `content` in the order before prior
    and memory, `ranked` in the final order.
    """
    of_legs = {s.chunk_id: rank for rank, s in enumerate(seen, 1)}
    of_content = {s.chunk_id: rank for rank, s in enumerate(content, 1)}
    by_id = {s.chunk_id: s for s in ranked}
    return [
        hit.model_copy(
            update={
                "reasons": Reasons(
                    parts={name: round(value, 6) for name, value in by_id[came_by].parts.items()},
                    basis=features(by_id[came_by])._asdict(),
                    rank_of_legs=of_legs[came_by],
                    rank_of_content=of_content[came_by],
                )
            }
        )
        for hit in hits
        for came_by in [hit.parent_of or hit.chunk_id]
    ]
