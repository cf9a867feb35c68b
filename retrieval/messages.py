"""The request and the response of a search, as sent over HTTP and the queue."""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from callslip.messages.options import Ranking
from callslip.messages.search import Area as Area
from callslip.messages.search import Hit as Hit
from callslip.messages.search import Leg as Leg
from callslip.messages.search import Legs as Legs
from callslip.messages.search import Matched as Matched
from callslip.messages.search import Pages as Pages
from callslip.messages.search import Reasons as Reasons
from callslip.messages.search import SearchResponse as SearchResponse
from callslip.messages.search import Span as Span
from callslip.messages.search import TimeClamp as TimeClamp
from callslip.messages.values import OptionalWhole
from callslip.models.text.normalization import normal_question
from callslip.stores.fusion import Fusion
from callslip.stores.metrics import Metric
from callslip.stores.naming import Tenant
from callslip.stores.properties.filters import instant, is_unicode
from callslip.stores.schemas import MAX_DIMENSION
from callslip.vocabulary import ParentStrategy


def _unicode(text: str) -> str:
    if not is_unicode(text):
        raise ValueError("is not valid Unicode")
    return text


def _as_of(text: str) -> str:
    if text and text not in ("now", "any") and instant(text) is None:
        raise ValueError("is no ISO 8601 date or datetime, nor `now`, nor `any`")
    return text


Text = Annotated[str, AfterValidator(_unicode)]
"""Text without halves of surrogate pairs, which JSON can contain and which are no characters."""


Moment = Annotated[str, AfterValidator(_as_of)]
"""An ISO 8601 date or datetime, `now`, or `any`."""

NO_KEYWORDS = "it is attached from Chroma, whose server searches vectors alone"

STRANGERS = "the vectors of the attached table are not of this installation's embedder"
"""The reason in `left_out` for the missing vector retriever of an attached table."""

Level = Annotated[int, Field(ge=-1000, le=1000)]


class SearchRequest(BaseModel):
    """A search of one collection."""

    model_config = ConfigDict(extra="forbid")

    collection: Text = Field(description="the collection to search")
    query: Annotated[Text, AfterValidator(normal_question)] = Field(
        "", description="the question, in English or Korean"
    )
    query_embedding: list[float] | None = Field(
        None,
        min_length=1,
        max_length=MAX_DIMENSION,
        description="the question as a vector of the collection's model; with `query`, its"
        " words are searched too",
    )
    tenant: Tenant | None = Field(None, description="the tenant, in a collection with tenants")
    top: OptionalWhole = Field(
        None, ge=1, description="the most hits; default: all, up to the setting search.max_top"
    )
    alpha: float | None = Field(
        None,
        ge=0,
        le=1,
        description="weight of the vector retriever; 0: keyword only, 1: vector; default: chosen"
        " for the question",
    )
    fusion: Fusion | None = Field(
        None,
        description="how the retrievers are merged: by scores calibrated per collection, by scores"
        " alone, by reciprocal rank, or by the store",
    )
    method: Metric | None = Field(
        None, description="the distance of vectors; default: that of the collection's index"
    )
    vector_name: Text | None = Field(
        None, description="the name of a chunk's vector; default: the default vector"
    )
    include_vector: bool = Field(False, description="return the hits' vectors too")
    include_boxes: bool = Field(
        False, description="return the lines of hits on the pages of a PDF too"
    )
    horizon: float | None = Field(
        None, allow_inf_nan=False, description="the greatest distance of a hit, by `method`"
    )
    operation_level: Level | Literal["every"] | None = Field(
        None,
        description="level of the hits: 0 documents, 1 sections, 2 passages, -1 the deepest level,"
        " or `every`; default: the setting search.level (passages)",
    )
    parent_strategy: ParentStrategy | None = Field(
        None, description="add the hits' parents, or replace the hits with their parents"
    )
    having_all: dict[str, Any] | None = Field(
        None,
        description="conditions that must all be true: `property OPERATOR` to value",
        examples=[{"doc_type": "policy", "year >=": 2024}],
    )
    having_any: dict[str, Any] | None = Field(
        None, description="conditions of which at least one must be true"
    )

    ranking: Ranking | None = Field(
        None, description="ranking parameters that replace those of the collection"
    )
    replay: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")] | None = Field(
        None,
        description="`trace_id` of an earlier search, whose random numbers are repeated: if nothing"
        " changed, the same question has the same hits",
    )
    explain: bool = Field(False, description="return the parts of every hit's score")
    as_of: Moment | None = Field(
        None,
        description="only chunks in force then: an ISO 8601 date or datetime, `now`, or `any`"
        " for all versions; default: the time that the question names, or the setting"
        " search.as_of",
        examples=["2020-03-31"],
    )
    count_not_in_force: bool = Field(
        False,
        description="count the documents that are left out because they are not in force at"
        " `as_of`, which takes a second search; a search without hits counts them anyway",
    )

    @model_validator(mode="after")
    def _asks(self) -> Self:
        if "query" not in self.model_fields_set and self.query_embedding is None:
            raise ValueError("query is missing")
        return self
