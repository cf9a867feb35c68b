"""The response to a search: its hits and how they were ranked."""

from datetime import UTC, datetime, time
from typing import Any

from pydantic import Field

from callslip.messages.base import Message, Word
from callslip.vocabulary import Fusion, PageUnit, TimeSource


class Leg(Message):
    """A hit's rank in one retriever, from 1, and its raw score: cosine similarity or BM25."""

    rank: int
    score: float


class Legs(Message):
    """The results of both retrievers for a hit; null if a retriever did not return it."""

    vector: Leg | None
    keyword: Leg | None


class Span(Message):
    """Characters of the document's extracted text: `text[start:end]` is the hit's text."""

    start: int
    end: int


_UNITS = {
    "page": ("p.", "pp."),
    "slide": ("slide", "slides"),
    "sheet": ("sheet", "sheets"),
    "chapter": ("chapter", "chapters"),
}


class Pages(Message):
    """Where a passage stands in a file that has pages, slides, sheets or chapters."""

    unit: Word[PageUnit]
    first: int = Field(description="from 1")
    last: int = Field(description="the same as `first` if the passage is on one page")
    labels: list[str] = Field(
        description="what is printed on the first and the last page, such as `iv`, or the sheets'"
        " names; empty if the file does not tell"
    )

    def short(self) -> str:
        """Return the pages as people cite them: `p. 3`, `pp. iv–v`, `slide 2`, `sheet Rates`."""
        one, several = _UNITS.get(self.unit, (self.unit, self.unit))
        first, last = self.labels if len(self.labels) == 2 else (str(self.first), str(self.last))
        return f"{one} {first}" if self.first == self.last else f"{several} {first}–{last}"


class Area(Message):
    """A rectangle on a page of a PDF, in points from the top left corner of the page."""

    page: int
    left: float
    top: float
    right: float
    bottom: float


class Reasons(Message):
    """The parts of a hit's score.

    `fused`: the scores of the retrievers; or `hotset`: the question's similarity to questions that
    the passage has answered. `proximity`: words that follow each other as in the question.
    `rerank`: the reranker. `prior`: facets that the question is about. `memory`: earlier feedback.
    """

    parts: dict[str, float] = Field(description="the addend of each part; their sum is the score")
    basis: dict[str, float | None] = Field(
        description="features and their weights: `vector` has alpha, `keyword` has"
        " 1 - alpha, …; null: the weight was 0 (docs/tuning.md)"
    )
    rank_of_legs: int = Field(description="rank by `fused` alone")
    rank_of_content: int = Field(description="rank before prior and memory")


class Hit(Message):
    """A passage with its location and the parts of its score."""

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
    pages: Pages | None = Field(
        default=None,
        description="null if the format has no pages, or if the document was ingested before"
        " Callslip kept them",
    )
    boxes: list[Area] | None = Field(
        default=None,
        description="the lines of the passage on the pages of a PDF, if `include_boxes` is set",
    )
    source_url: str | None = Field(
        default=None, description="the web address of the document's source; null: unknown"
    )
    within: str | None = Field(
        default=None,
        description="the mail or archive that contains the document, by its name, and the folders"
        " in it; null: none",
    )
    lang: str
    properties: dict[str, Any]
    legs: Legs
    level: int = Field(description="0: a document, 1: a section, 2: a passage")
    parent_id: str | None = Field(description="chunk id of the chunk that contains this one")
    parent_of: str | None = Field(
        description="chunk id of the hit whose parent this is; null for other hits"
    )
    vector: list[float] | None = Field(
        description="the searched vector of the hit, if `include_vector` is set"
    )
    vectors: dict[str, list[float]] | None = Field(
        default=None,
        description="all vectors of the hit by name, the default one as `default`, if"
        " `include_vector` is set and the collection has named vectors",
    )
    reasons: Reasons | None = Field(default=None, description="if `explain` is set")


class TimeClamp(Message):
    """The moment at which the hits are in force, and its source."""

    at: datetime | None = Field(description="an instant in UTC; null: any time")
    source: Word[TimeSource] = Field(
        description="given: in the request; understood: from the question; default: search.as_of"
    )
    words: str | None = Field(description="the words of the question that name the moment")

    def day(self, requested: str | None = None) -> str:
        """Return the day for a reader: as `requested`, the request's `as_of`, has it, else here.

        A moment that is a midnight in UTC stands for a date. Empty if `at` is null.
        """
        if self.at is None:
            return ""
        if self.source == "given" and requested and requested != "now":
            return requested
        at = self.at.astimezone(UTC)
        return (at if at.time() == time() else at.astimezone()).date().isoformat()


class Matched(Message):
    """Why the vector retriever has its weight: the question's words in the best keyword hit.

    The more rare words of the question a passage has, the more weight has the keyword retriever.
    """

    bits: float = Field(
        description="information of the matched words: of one that a quarter of"
        " the passages has about 2"
    )
    of: float = Field(description="information of all words of the question")


class SearchResponse(Message):
    """The hits of a search, best first, and how they were found."""

    trace_id: str = Field(description="id of the search for feedback and `/debug/trace`")
    collection: str
    query: str
    hits: list[Hit]
    alpha: float = Field(description="weight of the vector retriever in this search")
    matched: Matched | None = Field(
        default=None,
        description="why alpha has this value; null if the request, the collection or the settings"
        " set it, or if the scores are not calibrated",
    )
    fusion: Word[Fusion]
    as_of: TimeClamp
    not_in_force: int | None = Field(
        default=None,
        description="documents with passages among the best ones that were left out because they"
        " are not in force at `as_of`; null: not counted",
    )
    cut: bool = Field(description="true if the request has no `top` and there may be more hits")
    candidates: int = Field(description="number of distinct chunks from both retrievers")
    hotset: bool = Field(
        default=False,
        description="true if the hits are passages that helped with nearly the same question, and"
        " no other passages were searched (`search.hotset`)",
    )
    partial: bool = Field(
        description="true if a retriever or the reranker was left out because it did not answer"
    )
    left_out: dict[str, str] = Field(description="`vector`, `keyword` or `rerank` to the reason")
    timings: dict[str, float] = Field(description="milliseconds per stage, measured in the worker")
