"""Settings of searches in FAQ."""

from typing import Literal, get_args

from pydantic import Field

from callslip.config.sections.section import Section

Strategy = Literal["question", "answer", "question_answer"]
"""The part of a row that is embedded."""

STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)

VARIABLES = {
    "CHROMA_COLLECTION_NAME": "faq.collection",
    "TOP_K": "faq.top_k",
    "SIMILARITY_THRESHOLD": "faq.threshold",
}
"""Variables of programs with `VectorSearch`, each with its setting; Callslip's own variables
override them."""


class FaqSettings(Section):
    """Defaults of `VectorSearch` and `POST /v1/compare`: the collection, and the number of rows."""

    collection: str = Field(
        default="faq__question_answer",
        min_length=1,
        description="the collection; CHROMA_COLLECTION_NAME",
    )
    top_k: int = Field(default=5, ge=1, description="the most hits of each collection; TOP_K")
    threshold: float = Field(
        default=0.0,
        ge=-1,
        le=1,
        description="least cosine similarity of a hit; with the local embedder between .7 and .95;"
        " SIMILARITY_THRESHOLD",
    )
