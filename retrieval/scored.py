"""Candidates with all that moves them: the parts of a score, each under its name."""

from collections.abc import Iterable
from typing import NamedTuple

from stores.fusion import Candidate

Parts = dict[str, float]
"""Name to what it adds: `fused` or `hotset`, `proximity`, `rerank`, `prior`, `memory`."""


class Scored(NamedTuple):
    """A candidate; its score is the sum of the parts."""

    candidate: Candidate
    parts: Parts
    score: float

    @property
    def chunk_id(self) -> str:
        """The candidate's."""
        return self.candidate.chunk_id

    def plus(self, name: str, value: float) -> "Scored":
        """The same with one part more; nothing of it where it adds nothing."""
        if not value:
            return self
        return Scored(self.candidate, {**self.parts, name: value}, self.score + value)


def fused(candidates: Iterable[Candidate], name: str = "fused") -> list[Scored]:
    """Candidates as they were found; their first part has this name."""
    return [Scored(each, {name: each.score}, each.score) for each in candidates]


def in_order(scored: Iterable[Scored]) -> list[Scored]:
    """Best first, ties by chunk id."""
    return sorted(scored, key=lambda s: (-s.score, s.candidate.chunk_id))
