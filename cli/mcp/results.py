"""The results of the MCP server's tools: each model is a tool's output schema."""

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from callslip.agent.messages import Reason
from callslip.retrieval.messages import Pages, Span, TimeClamp
from callslip.vocabulary import Certainty


class Result(BaseModel):
    """Validation errors never show the input, which may contain text of a document."""

    model_config = ConfigDict(hide_input_in_errors=True)


class Passage(Result):
    """A hit of a search."""

    rank: int = Field(description="from 1, best first")
    score: float
    title: str = Field(description="of its document")
    heading: str = Field(description="of its section")
    text: str
    document_id: str = Field(description="for get_document")
    chunk_id: str = Field(description="for feedback")
    span: Span = Field(description="where it stands in the document's text")
    pages: Pages | None = Field(None, description="where it stands in the file, if it has pages")
    source_url: str | None = Field(None, description="the web address of the document's source")
    within: str | None = Field(None, description="the mail or archive that contains the document")
    valid_from: str | None = Field(None, description="in force from this day; null: ever since")
    valid_to: str | None = Field(
        None, description="in force until this day, not included; null: open"
    )


class SearchResult(Result):
    """Passages, best first."""

    trace_id: str = Field(description="names this search in feedback")
    hits: list[Passage]
    as_of: TimeClamp
    cut: bool = Field(description="true: there may be more than these")
    partial: bool = Field(description="true: a part of the search did not answer")


class Source(Result):
    """A cited passage, or one of the nearest passages."""

    number: int = Field(description="the n of [n] in the text")
    title: str
    heading: str
    quote: str = Field(description="the sentence, word for word")
    document_id: str = Field(description="for get_document")
    chunk_id: str
    version: int = Field(description="of the document, when this was answered")
    span: Span = Field(description="where the quote stands in the document's text")
    pages: Pages | None = Field(None, description="where it stands in the file, if it has pages")
    source_url: str | None = Field(
        None, description="the web address of the document's source, at the quote if it is a page"
    )
    within: str | None = Field(None, description="the mail or archive that contains the document")
    valid_from: datetime | None = None
    valid_to: datetime | None = None


class AnswerResult(Result):
    """An answer with its sources, or the reason why there is none."""

    trace_id: str = Field(description="names this answer in feedback")
    answered: bool = Field(description="false: the documents do not say it, see nearest")
    text: str = Field(description="[n] is the citation of that number")
    citations: list[Source]
    nearest: list[Source] = Field(description="passages that came near, where nothing answered")
    reason: Reason = Field(description="why it counts as answered, or does not")
    certainty: Certainty = Field(
        description="of answers made of extracts, about 9 of 10 that are sure were right, and"
        " about 6 of 10 that are probably right"
    )
    understood: str = Field(description="the question as it was searched")
    thread_id: str | None = Field(description="send it again with a question that follows")
    written_by: Literal["extracts", "model"]
    as_of: TimeClamp
    partial: bool


class DocumentResult(Result):
    """A document and a part of its text."""

    document_id: str
    collection: str
    tenant: str
    name: str
    title: str
    state: str = Field(
        description="live: searches find it; waiting, working, stalled: not yet; failed, deleted"
    )
    version: int
    properties: dict[str, Any]
    url: str | None = Field(None, description="the web address of its source")
    error: str | None = Field(description="why it failed and what to do")
    text: str = Field(description="characters start to end of the extracted text")
    start: int
    end: int
    length: int = Field(description="of the whole text; 0: there is none yet")
    next_start: int | None = Field(description="send it as start for what follows; null: the end")


class IngestResult(Result):
    """The result of sending a document."""

    document_id: str
    version: int
    outcome: Literal["accepted", "unchanged"] = Field(
        description="unchanged: the same content was there under this name already"
    )
    state: str = Field(description="live: searches find it now")
    steps_done: int
    steps: int
    advice: str = Field(description="what to do next")


class FeedbackResult(Result):
    """Recorded feedback."""

    feedback_id: str
    chunk_ids: list[str]
    counted: list[str] = Field(description="those whose memory it changed")


def as_text(answer: AnswerResult, question: str) -> str:
    """Format the answer to a question for clients that read no structured content."""
    lines = [answer.text]
    for heading, sources in (("Sources", answer.citations), ("Nearest", answer.nearest)):
        if sources:
            lines.append(f"\n{heading}:")
            lines += map(_as_line, sources)
    if answer.understood != question:
        lines.append(f"\nUnderstood as: {answer.understood}")
    lines.append(f"\nanswered: {str(answer.answered).lower()}, trace_id: {answer.trace_id}")
    return "\n".join(lines)


def _as_line(source: Source) -> str:
    heading = " › ".join(filter(None, (source.title, source.heading)))
    if source.pages:
        heading += f", {source.pages.short()}"
    if source.within:
        heading += f", in {source.within}"
    if source.source_url:
        heading += f", {source.source_url}"
    at = f"document_id {source.document_id}, {source.span.start}–{source.span.end}"
    return f"[{source.number}] {heading} ({at}): {source.quote}"
