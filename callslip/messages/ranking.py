"""The ranking parameters of a collection, and searches to fit them on."""

from pydantic import Field

from callslip.messages.base import Message, Word
from callslip.vocabulary import Fusion


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
