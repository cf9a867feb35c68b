"""The ranking parameters of a collection, and searches to fit them on."""

from typing import Any

from pydantic import Field

from callslip.messages.base import Message, Word
from callslip.vocabulary import Fusion, ProposalKind, ProposalState


class RankingMessage(Message):
    """The ranking parameters of a collection's searches, unless a request has others."""

    alpha: float | None = Field(description="null: chosen for each question")
    fusion: Word[Fusion]
    pool: int
    proximity: float
    facets_weight: float
    facets_top: int
    memory_weight: float
    exploration_ratio: float
    rerank: bool
    rerank_top: int
    mmr_lambda: float
    narrow: bool
    hotset: bool


class ProposalMessage(Message):
    """A run that looked for better weights or further facets, and what it proposes."""

    proposal_id: str
    kind: Word[ProposalKind]
    collection: str
    tenant: str = Field(description="whose passages were sampled; empty: those of all")
    state: Word[ProposalState] = Field(
        description="`waiting` for a yes; `nothing`: the run proposes nothing"
    )
    began_at: float
    ended_at: float | None
    figures: dict[str, Any] = Field(description="why: docs/tuning.md, docs/facets.md")
    changes: dict[str, Any] = Field(description="the options of the collection that it replaces")
    reason: str = Field(description="why there is no proposal, or why the run failed")
    decided_at: float | None
    decided_by: str | None = Field(description="a caller, or `scheduler`")

    def in_words(self) -> list[str]:
        """The figures of the run and the options that it would set, a line each."""
        lines, figures = [], self.figures
        if gain := figures.get("gain"):
            lines.append(
                f"nDCG@10 of held-out questions {figures['before']:.3f} → {figures['after']:.3f},"
                f" gain {gain['mean']:+.3f} [{gain['low']:+.3f}, {gain['high']:+.3f}],"
                f" {figures['questions']:,} questions"
            )
        for name, value in self.changes.get("ranking", {}).items():
            if name in figures["now"] and (now := figures["now"][name]) != value:
                lines.append(f"{name}: {'chosen' if now is None else f'{now:g}'} → {value:g}")
        proposed = self.changes.get("facets", ())
        lines += [
            f"{p['name']}: {p['distinct']:,} values on {p['coverage']:.0%} of passages, separation"
            f" {p['separation']:.2f}{' – proposed' if p['name'] in proposed else ''}"
            for p in figures.get("properties", ())
        ]
        return [*lines, self.reason] if self.reason else lines


class ProposalsMessage(Message):
    """Runs and their proposals, newest first."""

    proposals: list[ProposalMessage]


class JudgedSearchLine(Message):
    """A search with judged hits."""

    question: str = Field(description="id of the question; equal words have equal ids")
    vector: str | None = Field(description="its vector: half precision, little-endian, base64")
    alpha: float
    fusion: Word[Fusion]
    explored: tuple[int, float] | None = Field(
        description="rank, from 1, of a chunk that was explored, and the probability of that"
    )
    helped: list[int] = Field(description="ranks, from 1, of the hits that helped")
    basis: list[list[float | None]] = Field(
        description="features of the hits, then of other candidates, 40 in all: vector,"
        " keyword, proximity, facets, memory, rest (docs/tuning.md)"
    )
