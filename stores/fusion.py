"""Fusing the vector and the keyword leg into one ranking, the same for every store."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Fusion = Literal["weighted", "rrf", "native"]
"""weighted and rrf are Callslip's own, the same for every store; native is what a store has."""

Leg = Sequence[tuple[str, float]]


@dataclass(frozen=True)
class LegScore:
    """Where one leg ranked a chunk (from 1) and its raw score there."""

    rank: int
    score: float


@dataclass(frozen=True)
class Candidate:
    """A chunk of the fused ranking with what each leg said of it."""

    chunk_id: str
    score: float
    vector: LegScore | None
    keyword: LegScore | None


def fuse(
    vectors: Leg,
    keywords: Leg,
    *,
    fusion: Literal["weighted", "rrf"] = "weighted",
    alpha: float = 0.4,
    rrf_k: int = 60,
) -> list[Candidate]:
    """Merge two legs, each best first, into one list, best first; ties by chunk id.

    weighted: `alpha * (d - d_last) / (d_first - d_last) + (1 - alpha) * bm25 / bm25_first`, a leg
    that missed the chunk giving 0 (docs/architecture.md has the measurement). A leg of equal scores
    gives each of its chunks the full weight.

    rrf: reciprocal rank fusion, `sum of 1 / (rrf_k + rank)` over the legs (Cormack, Clarke and
    Büttcher 2009).
    """
    vector_at = {chunk: LegScore(i, s) for i, (chunk, s) in enumerate(vectors, 1)}
    keyword_at = {chunk: LegScore(i, s) for i, (chunk, s) in enumerate(keywords, 1)}
    candidates = []
    for chunk in vector_at.keys() | keyword_at.keys():
        v, k = vector_at.get(chunk), keyword_at.get(chunk)
        if fusion == "rrf":
            score = sum(1 / (rrf_k + leg.rank) for leg in (v, k) if leg)
        else:
            score = 0.0
            if v:
                spread = vectors[0][1] - vectors[-1][1]
                score += alpha * ((v.score - vectors[-1][1]) / spread if spread > 0 else 1.0)
            if k:
                score += (1 - alpha) * (k.score / keywords[0][1] if keywords[0][1] > 0 else 1.0)
        candidates.append(Candidate(chunk, score, v, k))
    candidates.sort(key=lambda c: (-c.score, c.chunk_id))
    return candidates
