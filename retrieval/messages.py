"""What a search asks and what it answers, as it travels over HTTP and the queue."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from stores.filters import is_unicode


def _unicode(text: str) -> str:
    if not is_unicode(text):
        raise ValueError("is not valid Unicode")
    return text


Text = Annotated[str, AfterValidator(_unicode)]
"""JSON can write half of a surrogate pair, which is no character."""


class SearchRequest(BaseModel):
    """A question to one collection."""

    model_config = ConfigDict(extra="forbid")

    collection: Text = Field(description="the collection to search")
    query: Text = Field(description="the question, in English or Korean")
    top: int | None = Field(
        None, ge=1, description="most hits to return; default from the settings"
    )
    alpha: float | None = Field(
        None, ge=0, le=1, description="weight of the vector leg: 0 keyword only, 1 vector only"
    )
    fusion: Literal["weighted", "rrf", "native"] | None = Field(
        None, description="how the legs are merged; rrf is reciprocal rank fusion"
    )
    having_all: dict[str, Any] | None = Field(
        None,
        description="conditions that must all hold, `property OPERATOR` to value",
        examples=[{"doc_type": "policy", "year >=": 2024}],
    )
    having_any: dict[str, Any] | None = Field(
        None, description="conditions of which at least one must hold"
    )


class Leg(BaseModel):
    """Where one leg ranked a hit, from 1, and its raw score: cosine similarity or BM25."""

    rank: int
    score: float


class Legs(BaseModel):
    """Both legs; null where a leg did not find the hit."""

    vector: Leg | None
    keyword: Leg | None


class Span(BaseModel):
    """Characters of the document's extracted text: `text[start:end]` is the hit's text."""

    start: int
    end: int


class Hit(BaseModel):
    """A passage with its place and the reasons for its rank."""

    rank: int
    score: float
    chunk_id: str
    document_id: str
    title: str
    filename: str
    section: str
    heading: str
    text: str
    span: Span
    lang: str
    properties: dict[str, Any]
    legs: Legs


class SearchResponse(BaseModel):
    """The hits, best first, and how they were found."""

    collection: str
    query: str
    hits: list[Hit]
    alpha: float
    fusion: Literal["weighted", "rrf", "native"]
    candidates: int = Field(description="distinct chunks that the legs found together")
    partial: bool = Field(description="true where a leg was left out because it did not answer")
    left_out: dict[str, str] = Field(description="leg to reason")
    timings: dict[str, float] = Field(description="milliseconds per stage, measured in the worker")
