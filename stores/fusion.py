"""Fuses the hits of the vector retriever and the keyword retriever into one ranking."""

from collections.abc import Sequence
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
    shares = _shares(vectors, keywords, fusion, alpha, rrf_k, scale)
    of_vector = {hit[0]: share for hit, share in zip(vectors, shares.vector, strict=True)}
    of_keyword = {hit[0]: share for hit, share in zip(keywords, shares.keyword, strict=True)}
    return _best_first(
        [
            Candidate(
                chunk,
                of_vector.get(chunk, shares.no_vector) + of_keyword.get(chunk, 0.0),
                vector_at.get(chunk),
                keyword_at.get(chunk),
            )
            for chunk in {**vector_at, **keyword_at}
        ]
    )


def _best_first(candidates: list[Candidate]) -> list[Candidate]:
    """Sort by score, highest first, then by chunk id; two sorts take less than one by a pair."""
    candidates.sort(key=itemgetter(0))
    candidates.sort(key=itemgetter(1), reverse=True)
    return candidates


class _Shares(NamedTuple):
    """What the hits of each retriever add to the scores of their chunks, in the order of the hits.

    `no_vector` is what a chunk gets that only the keyword retriever returned.
    """

    vector: list[float]
    keyword: list[float]
    no_vector: float = 0.0


def _shares(
    vectors: ScoredIds,
    keywords: ScoredIds,
    fusion: Fusion,
    alpha: float,
    rrf_k: int,
    scale: Scale | None,
) -> _Shares:
    if fusion == "rrf":
        best = [1 / (rrf_k + rank) for rank in range(1, max(len(vectors), len(keywords)) + 1)]
        return _Shares(best[: len(vectors)], best[: len(keywords)])
    if fusion == "calibrated" and scale is not None:
        return _Shares(
            [alpha * scale.vector(score) for _, score in vectors],
            [(1 - alpha) * scale.keyword(score) for _, score in keywords],
            alpha * scale.vector(vectors[-1][1]) if vectors else 0.0,
        )
    last = vectors[-1][1] if vectors else 0.0
    spread = vectors[0][1] - last if vectors else 0.0
    most = keywords[0][1] if keywords else 0.0
    return _Shares(
        [alpha * ((score - last) / spread if spread > 0 else 1.0) for _, score in vectors],
        [(1 - alpha) * (score / most if most > 0 else 1.0) for _, score in keywords],
    )
