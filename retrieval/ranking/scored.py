"""Candidates with their scores and the named parts of each score."""

from collections.abc import Iterable
from operator import attrgetter
from typing import NamedTuple

from callslip.stores.fusion import Candidate

Parts = dict[str, float]
"""Score parts by name: `fused` or `hotset`, `proximity`, `rerank`, `prior`, `memory`."""


class Scored(NamedTuple):
    """A candidate with its score, which is the sum of the parts."""

    candidate: Candidate
    parts: Parts
    score: float

    @property
    def chunk_id(self) -> str:
        """The chunk id of the candidate."""
        return self.candidate.chunk_id

    def plus(self, name: str, value: float) -> "Scored":
        """Return a copy with one more part, or this value itself if `value` is 0."""
        if not value:
            return self
        return Scored(self.candidate, {**self.parts, name: value}, self.score + value)


def fused(candidates: Iterable[Candidate], name: str = "fused") -> list[Scored]:
    """Return candidates with their retrieval score as the first part, which has this name."""
    return [Scored(each, {name: each.score}, each.score) for each in candidates]


def in_order(scored: Iterable[Scored]) -> list[Scored]:
    """Return the candidates sorted by descending score; ties keep their order."""
    return sorted(scored, key=attrgetter("score"), reverse=True)
