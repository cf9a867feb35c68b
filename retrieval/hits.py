"""Hits as they are given, with the reasons for their ranks."""

from collections.abc import Callable

from retrieval.basis import Basis
from retrieval.messages import Hit, Leg, Legs, Reasons, SearchRequest, Span
from retrieval.scored import Scored
from stores.fusion import LegScore
from stores.records import StoredChunk


def _leg(score: LegScore | None) -> Leg | None:
    return None if score is None else Leg(rank=score.rank, score=round(score.score, 6))


def make_hit(
    rank: int, scored: Scored, chunk: StoredChunk, child: str, request: SearchRequest
) -> Hit:
    """A hit; a parent has the score and the legs of the child that it came by."""
    name = request.vector_name
    vector = chunk.named.get(name) if name else chunk.vector
    if not request.include_vector:  # it may have been read to tell hits apart
        vector = None
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
        lang=chunk.lang,
        properties=chunk.properties,
        legs=Legs(vector=_leg(scored.candidate.vector), keyword=_leg(scored.candidate.keyword)),
        level=chunk.level,
        parent_id=chunk.parent_id or None,
        parent_of=child or None,
        vector=None if vector is None else vector.tolist(),
    )


def explained(
    hits: list[Hit],
    seen: list[Scored],
    content: list[Scored],
    ranked: list[Scored],
    basis: Callable[[Scored], Basis],
) -> list[Hit]:
    """The hits with what their scores are made of.

    `seen` is in the order of the legs, `content` before prior and memory, `ranked` at last.
    """
    of_legs = {s.chunk_id: rank for rank, s in enumerate(seen, 1)}
    of_content = {s.chunk_id: rank for rank, s in enumerate(content, 1)}
    by_id = {s.chunk_id: s for s in ranked}
    return [
        hit.model_copy(
            update={
                "reasons": Reasons(
                    parts={name: round(value, 6) for name, value in by_id[came_by].parts.items()},
                    basis=basis(by_id[came_by])._asdict(),
                    rank_of_legs=of_legs[came_by],
                    rank_of_content=of_content[came_by],
                )
            }
        )
        for hit in hits
        for came_by in [hit.parent_of or hit.chunk_id]
    ]
