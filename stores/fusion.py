"""Fuses the hits of the vector retriever and the keyword retriever into one ranking."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple

from callslip.vocabulary import Fusion as Fusion

ScoredIds = Sequence[tuple[str, float]]

DEVIATIONS = 6.0
"""The best chunk for a question scores about this many standard deviations above the mean."""


@dataclass(frozen=True)
class Scale:
    """Scales the retrievers' scores for one question, independently of the candidates.

    `mean` and `deviation` are those of the vector scores of arbitrary chunks; `most` is the keyword
    score of a chunk that consists of exactly the words of the question. So the scores of two
    searches for the same question under different filters are comparable. `information` is the sum
    of the inverse document frequencies of the question's words, in nats.
    """

    mean: float
    deviation: float
    most: float
    information: float = 0.0

    def vector(self, score: float) -> float:
        """The scaled vector score: about 1 for the best chunk, 0 for an average one."""
        return (score - self.mean) / (DEVIATIONS * self.deviation) if self.deviation > 0 else 0.0

    def keyword(self, score: float) -> float:
        """The fraction of the question's words that a chunk has, weighted by rarity."""
        return score / self.most if self.most > 0 else 0.0


class RetrieverScore(NamedTuple):
    """A chunk's rank in one retriever (from 1) and its raw score."""

    rank: int
    score: float


class Candidate(NamedTuple):
    """A chunk of the fused ranking with its rank and score in each retriever."""

    chunk_id: str
    score: float
    vector: RetrieverScore | None
    keyword: RetrieverScore | None


def fuse(
    vectors: ScoredIds,
    keywords: ScoredIds,
    *,
    fusion: Fusion = "calibrated",
    alpha: float = 0.4,
    rrf_k: int = 60,
    scale: Scale | None = None,
) -> list[Candidate]:
    """Fuse the hits of two retrievers, each best first, into one list, best first.

    calibrated: `alpha * scale.vector(d) + (1 - alpha) * scale.keyword(bm25)`. A chunk that only the
    keyword retriever returned gets the lowest score of the vector retriever's hits for `d`. Without
    `scale`, it is the same as `weighted`.

    weighted: `alpha * (d - d_last) / (d_first - d_last) + (1 - alpha) * bm25 / bm25_first`. A
    retriever that did not return the chunk contributes 0. If all scores of a retriever are equal,
    each of its chunks gets the full weight.

    rrf: reciprocal rank fusion, `sum of 1 / (rrf_k + rank)` over the retrievers (Cormack, Clarke
    and Büttcher 2009).

    Ties are broken by chunk id. docs/quality.md compares the three.
    """
    vector_at = {chunk: RetrieverScore(i, s) for i, (chunk, s) in enumerate(vectors, 1)}
    keyword_at = {chunk: RetrieverScore(i, s) for i, (chunk, s) in enumerate(keywords, 1)}
    worth = _worth(vectors, keywords, fusion, alpha, rrf_k, scale)
    both = ((i, vector_at.get(i), keyword_at.get(i)) for i in vector_at.keys() | keyword_at.keys())
    return _best_first([Candidate(i, worth(v, k), v, k) for i, v, k in both])


def fuse_anew(
    candidates: Sequence[Candidate], *, alpha: float, scale: Scale | None
) -> list[Candidate]:
    """Fuse candidates anew by calibrated scores, with another weight of the vector retriever."""
    vectors = sorted(c.vector for c in candidates if c.vector)
    keywords = sorted(c.keyword for c in candidates if c.keyword)
    worth = _worth(vectors, keywords, "calibrated", alpha, 0, scale)
    return _best_first([Candidate(c[0], worth(c[2], c[3]), c[2], c[3]) for c in candidates])


def _best_first(candidates: list[Candidate]) -> list[Candidate]:
    """Sort by score, highest first, then by chunk id; two sorts take less than one by a pair."""
    candidates.sort(key=itemgetter(0))
    candidates.sort(key=itemgetter(1), reverse=True)
    return candidates


def _worth(
    vectors: Sequence[tuple[object, float]],
    keywords: Sequence[tuple[object, float]],
    fusion: Fusion,
    alpha: float,
    rrf_k: int,
    scale: Scale | None,
) -> Callable[[RetrieverScore | None, RetrieverScore | None], float]:
    """Return the function from a chunk's retriever scores (None if missing) to its score.

    `vectors` and `keywords` end with the score of each hit, best first.
    """
    if fusion == "rrf":
        return lambda v, k: sum(1 / (rrf_k + score.rank) for score in (v, k) if score)
    if fusion == "calibrated" and scale is not None:
        lowest = scale.vector(vectors[-1][1]) if vectors else 0.0
        return lambda v, k: (
            alpha * (scale.vector(v.score) if v else lowest)
            + (1 - alpha) * (scale.keyword(k.score) if k else 0.0)
        )
    last = vectors[-1][1] if vectors else 0.0
    spread = vectors[0][1] - last if vectors else 0.0
    best = keywords[0][1] if keywords else 0.0
    return lambda v, k: (
        (alpha * ((v.score - last) / spread if spread > 0 else 1.0) if v else 0.0)
        + ((1 - alpha) * (k.score / best if best > 0 else 1.0) if k else 0.0)
    )
