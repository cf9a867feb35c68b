"""Settings of searches in FAQ."""

from typing import Literal, get_args

from pydantic import Field

from config.section import Section

Strategy = Literal["question", "answer", "question_answer"]
"""What is embedded of a row."""

STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)


class FaqSettings(Section):
    """Where, and how much, `VectorSearch` and `POST /v1/compare` search when they are not told."""

    collection: str = Field(
        default="faq__question_answer", min_length=1, description="the collection"
    )
    top_k: int = Field(default=5, ge=1, description="most hits of each collection")
    threshold: float = Field(
        default=0.0,
        ge=-1,
        le=1,
        description="least cosine similarity of a hit; the local embedder's lie between .7 and .95",
    )
