"""Candidates with all that moves them: the parts of a score, each under its name."""

from collections.abc import Iterable
from dataclasses import dataclass

from stores.fusion import Candidate

Parts = dict[str, float]
"""Name to what it adds: `fused` first, then `proximity`, `rerank`, `prior`, `memory`."""


@dataclass(frozen=True)
class Scored:
    """A candidate; its score is the sum of the parts."""

    candidate: Candidate
    parts: Parts

    @property
    def chunk_id(self) -> str:
        """The candidate's."""
        return self.candidate.chunk_id

    @property
    def score(self) -> float:
        """What candidates are ranked by."""
        return sum(self.parts.values())

    def plus(self, name: str, value: float) -> "Scored":
        """The same with one part more; nothing of it where it adds nothing."""
        return Scored(self.candidate, {**self.parts, name: value}) if value else self


def fused(candidates: Iterable[Candidate]) -> list[Scored]:
    """Candidates as the legs left them."""
    return [Scored(candidate, {"fused": candidate.score}) for candidate in candidates]


def in_order(scored: Iterable[Scored]) -> list[Scored]:
    """Best first, ties by chunk id."""
    return sorted(scored, key=lambda s: (-s.score, s.chunk_id))
