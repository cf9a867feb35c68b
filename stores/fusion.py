"""Fusing the vector and the keyword leg into one ranking, the same for every store."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

Fusion = Literal["calibrated", "weighted", "rrf", "native"]
"""All but `native`, which is what a store has, are Callslip's own and the same for every store."""

Leg = Sequence[tuple[str, float]]

DEVIATIONS = 6.0
"""The best chunk for a question lies about so many standard deviations above all others."""


@dataclass(frozen=True)
class Scale:
    """What the legs' scores are worth for one question, whatever the candidates are.

    `mean` and `deviation` are of the vector scores of any chunks, `most` is the keyword score of a
    chunk that says all words of the question and nothing else. So the scores of two searches for
    the same question, under other filters, can be compared.
    """

    mean: float
    deviation: float
    most: float

    def vector(self, score: float) -> float:
        """About 1 for the best chunk of a collection, 0 for any."""
        return (score - self.mean) / (DEVIATIONS * self.deviation) if self.deviation > 0 else 0.0

    def keyword(self, score: float) -> float:
        """The share of the question's words that a chunk has, rare ones counting more."""
        return score / self.most if self.most > 0 else 0.0


class LegScore(NamedTuple):
    """Where one leg ranked a chunk (from 1) and its raw score there."""

    rank: int
    score: float


class Candidate(NamedTuple):
    """A chunk of the fused ranking with what each leg said of it."""

    chunk_id: str
    score: float
    vector: LegScore | None
    keyword: LegScore | None


def fuse(
    vectors: Leg,
    keywords: Leg,
    *,
    fusion: Fusion = "calibrated",
    alpha: float = 0.4,
    rrf_k: int = 60,
    scale: Scale | None = None,
) -> list[Candidate]:
    """Merge two legs, each best first, into one list, best first; ties by chunk id.

    calibrated: `alpha * scale.vector(d) + (1 - alpha) * scale.keyword(bm25)`. A chunk that only the
    keyword leg found has at most the last score of the vector leg, and is given that; without a
    scale as `weighted`.

    weighted: `alpha * (d - d_last) / (d_first - d_last) + (1 - alpha) * bm25 / bm25_first`, a leg
    that missed the chunk giving 0. A leg of equal scores gives each of its chunks the full weight.

    rrf: reciprocal rank fusion, `sum of 1 / (rrf_k + rank)` over the legs (Cormack, Clarke and
    Büttcher 2009).

    docs/quality.md compares them.
    """
    vector_at = {chunk: LegScore(i, s) for i, (chunk, s) in enumerate(vectors, 1)}
    keyword_at = {chunk: LegScore(i, s) for i, (chunk, s) in enumerate(keywords, 1)}
    worth = _worth(vectors, keywords, fusion, alpha, rrf_k, scale)
    candidates = []
    for chunk in vector_at.keys() | keyword_at.keys():
        v, k = vector_at.get(chunk), keyword_at.get(chunk)
        candidates.append(Candidate(chunk, worth(v, k), v, k))
    candidates.sort(key=lambda c: (-c.score, c.chunk_id))
    return candidates


def _worth(
    vectors: Leg, keywords: Leg, fusion: Fusion, alpha: float, rrf_k: int, scale: Scale | None
) -> Callable[[LegScore | None, LegScore | None], float]:
    """What a chunk is worth that the legs found, or did not find, like this."""
    if fusion == "rrf":
        return lambda v, k: sum(1 / (rrf_k + leg.rank) for leg in (v, k) if leg)
    if fusion == "calibrated" and scale is not None:
        floor = scale.vector(vectors[-1][1]) if vectors else 0.0
        return lambda v, k: (
            alpha * (scale.vector(v.score) if v else floor)
            + (1 - alpha) * (scale.keyword(k.score) if k else 0.0)
        )
    last = vectors[-1][1] if vectors else 0.0
    spread = vectors[0][1] - last if vectors else 0.0
    best = keywords[0][1] if keywords else 0.0
    return lambda v, k: (
        (alpha * ((v.score - last) / spread if spread > 0 else 1.0) if v else 0.0)
        + ((1 - alpha) * (k.score / best if best > 0 else 1.0) if k else 0.0)
    )
