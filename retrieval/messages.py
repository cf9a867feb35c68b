"""What a search asks and what it answers, as it travels over HTTP and the queue."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from retrieval.clamp import Source
from retrieval.parents import ParentStrategy
from stores.filters import instant, is_unicode
from stores.fusion import Fusion
from stores.metrics import Metric
from stores.naming import Tenant
from stores.options import Ranking


def _unicode(text: str) -> str:
    if not is_unicode(text):
        raise ValueError("is not valid Unicode")
    return text


def _as_of(text: str) -> str:
    if text and text not in ("now", "any") and instant(text) is None:
        raise ValueError("is no ISO 8601 date or datetime, nor `now`, nor `any`")
    return text


Text = Annotated[str, AfterValidator(_unicode)]
"""JSON can write half of a surrogate pair, which is no character."""


Moment = Annotated[str, AfterValidator(_as_of)]
"""An ISO 8601 date or datetime, `now`, or `any`."""

STRANGERS = "the vectors of the attached table are not of this installation's embedder"
"""Why `left_out` has the vector leg of a table of somebody else."""

Level = Annotated[int, Field(ge=-1000, le=1000)]


class SearchRequest(BaseModel):
    """A question to one collection."""

    model_config = ConfigDict(extra="forbid")

    collection: Text = Field(description="the collection to search")
    query: Text = Field("", description="the question, in English or Korean")
    query_embedding: list[float] | None = Field(
        None,
        min_length=1,
        description="the question as a vector of the collection's model; with `query` too, its"
        " words are searched beside",
    )
    tenant: Tenant | None = Field(None, description="whose documents; of a collection with tenants")
    top: int | None = Field(
        None, ge=1, description="most hits; left out: all, up to search.max_top of the settings"
    )
    alpha: float | None = Field(
        None, ge=0, le=1, description="weight of the vector leg: 0 keyword only, 1 vector only"
    )
    fusion: Fusion | None = Field(
        None,
        description="how the legs are merged: by scores held against the collection, by scores"
        " alone, by reciprocal rank, or as the store does",
    )
    method: Metric | None = Field(
        None, description="how vectors are compared; left out: as the collection is indexed"
    )
    vector_name: Text | None = Field(
        None, description="which of a chunk's vectors; left out: the default one"
    )
    include_vector: bool = Field(False, description="give the hits' vectors too")
    horizon: float | None = Field(
        None, allow_inf_nan=False, description="most distance of a hit, by `method`"
    )
    operation_level: Level | Literal["every"] | None = Field(
        None,
        description="level of the hits: 0 documents, 1 sections, 2 passages, -1 the deepest there"
        " is, or `every`; left out: as search.level of the settings says, passages",
    )
    parent_strategy: ParentStrategy | None = Field(
        None, description="add the hits' parents, or put them in the hits' place"
    )
    having_all: dict[str, Any] | None = Field(
        None,
        description="conditions that must all hold, `property OPERATOR` to value",
        examples=[{"doc_type": "policy", "year >=": 2024}],
    )
    having_any: dict[str, Any] | None = Field(
        None, description="conditions of which at least one must hold"
    )

    ranking: Ranking | None = Field(
        None, description="how hits are ranked, where that is to differ from the collection"
    )
    replay: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")] | None = Field(
        None,
        description="`trace_id` of an earlier search, whose chances are drawn again: while nothing"
        " changed, the same question has the same answer",
    )
    explain: bool = Field(False, description="say what every hit's score is made of")
    as_of: Moment | None = Field(
        None,
        description="only what is in force then: an ISO 8601 date or datetime, `now`, or `any`"
        " for all versions; left out: the time that the question names, else search.as_of of the"
        " settings",
        examples=["2020-03-31"],
    )

    @model_validator(mode="after")
    def _asks(self) -> Self:
        if "query" not in self.model_fields_set and self.query_embedding is None:
            raise ValueError("query is missing")
        return self


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


class Reasons(BaseModel):
    """What a hit's score is made of.

    `fused` is what the legs gave, or `hotset` how near the question is to those that the passage
    has answered, `proximity` words that follow each other as in the question,
    `rerank` the reranker, `prior` facets that the question is about, `memory` what helped before.
    """

    parts: dict[str, float] = Field(description="name to what it adds; their sum is the score")
    basis: dict[str, float | None] = Field(
        description="what the weights are multiplied with: alpha with `vector`, 1 - alpha with"
        " `keyword`, …; null: the weight was 0 (docs/tuning.md)"
    )
    rank_of_legs: int = Field(description="by `fused` alone")
    rank_of_content: int = Field(description="before prior and memory")


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
    level: int = Field(description="0: a document, 1: a section, 2: a passage")
    parent_id: str | None = Field(description="chunk id of the chunk that holds this one")
    parent_of: str | None = Field(
        description="chunk id of the hit that brought this parent; null for a hit of its own"
    )
    vector: list[float] | None = Field(
        description="the vector that was searched, where `include_vector` asked for it"
    )
    reasons: Reasons | None = Field(default=None, description="where `explain` asked for them")


class TimeClamp(BaseModel):
    """The moment that hits are in force at, and how it was chosen."""

    at: datetime | None = Field(description="an instant in UTC; null: any time")
    source: Source = Field(
        description="given: in the request; understood: from the question; default: search.as_of"
    )
    words: str | None = Field(description="of the question, that it was understood from")


class SearchResponse(BaseModel):
    """The hits, best first, and how they were found."""

    trace_id: str = Field(description="names the search in feedback and in `/debug/trace`")
    collection: str
    query: str
    hits: list[Hit]
    alpha: float
    fusion: Fusion
    as_of: TimeClamp
    cut: bool = Field(
        description="true where `top` was left out and there may be more hits than are given"
    )
    candidates: int = Field(description="distinct chunks that the legs found together")
    hotset: bool = Field(
        default=False,
        description="true where the hits are passages that helped with nearly this question, and"
        " nothing else was searched (`search.hotset`)",
    )
    partial: bool = Field(
        description="true where a leg, or the reranker, was left out because it did not answer"
    )
    left_out: dict[str, str] = Field(description="`vector`, `keyword` or `rerank` to the reason")
    timings: dict[str, float] = Field(description="milliseconds per stage, measured in the worker")
