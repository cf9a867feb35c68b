"""What the desk says of a collection's ranking."""

from pydantic import BaseModel, Field

from retrieval.knobs import Knobs
from stores.fusion import Fusion

MOST = 20_000
"""Searches that are read at most: four weights need no more."""


class RankingMessage(Knobs, frozen=True):
    """What searches of a collection go by, where a request does not say otherwise."""


class ExamplesQuery(BaseModel):
    """How many searches, the newest."""

    limit: int = Field(MOST, ge=1, le=MOST)


class JudgedSearchLine(BaseModel):
    """A search of which hits helped."""

    question: str = Field(description="id of the question: the same words have the same")
    vector: str | None = Field(description="its vector, half precision, little-endian, in base64")
    alpha: float
    fusion: Fusion
    explored: tuple[int, float] | None = Field(
        description="the place, from 1, of a chunk that was tried, and how likely that was"
    )
    helped: list[int] = Field(description="places, from 1, of the hits that helped")
    basis: list[list[float | None]] = Field(
        description="of the hits, then of candidates that were not shown, 40 in all: vector,"
        " keyword, proximity, facets, memory, rest (docs/tuning.md)"
    )
