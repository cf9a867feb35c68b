"""Answers with their citations, and conversations."""

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from callslip.messages.base import Message, Word
from callslip.messages.search import Area, Pages, Span, TimeClamp

Action = Literal["DRILLDOWN", "RELAX", "PIVOT"]
"""The next attempt if an answer is not approved (specification 003, §7).

DRILLDOWN: search only the documents of the nearest passages. RELAX: search more widely, without
priors. PIVOT: use other words, or the other retriever.
"""


Reason = Literal[
    "supported",
    "no-passages",
    "not-in-force",
    "not-covered",
    "not-apart",
    "not-grounded",
    "model-declined",
]
"""Why an answer is approved or not.

supported: it is approved. no-passages: the search had no hits. not-in-force: a cited passage was
not in force at `as_of`. not-covered: the passages do not contain the question's subject, or seem
not to answer. not-apart: other documents are as near. not-grounded: a sentence is not supported by
its passages. model-declined: the language model found no answer in the passages.
"""


class Citation(Message):
    """A passage that supports an answer, and its supporting sentence."""

    number: int = Field(description="from 1; sentences refer to it")
    chunk_id: str
    document_id: str
    version: int = Field(description="the document's live version when the answer was made")
    title: str
    filename: str
    section: str = Field(description="path of the passage's section")
    heading: str = Field(description="the nearest heading above the sentence")
    quote: str = Field(description="the sentence, verbatim")
    span: Span = Field(description="span of the quote in the extracted text")
    passage: Span = Field(description="span of the whole passage")
    pages: Pages | None = Field(
        default=None, description="where the sentence stands; null as in a hit of a search"
    )
    boxes: list[Area] | None = Field(
        default=None, description="the lines of the sentence on the pages of a PDF"
    )
    valid_from: datetime | None = Field(description="in force from; null: no start")
    valid_to: datetime | None = Field(description="in force until, exclusive; null: no end")
    url: str | None = Field(
        description="path of the page that shows it with the sentence marked; null if there"
        " is no text around the passage"
    )
    source_url: str | None = Field(
        default=None,
        description="the web address of the document's source; for a web page it leads to the"
        " sentence, by a text fragment (`#:~:text=`). null: unknown",
    )
    within: str | None = Field(
        default=None, description="the mail or archive that contains the document, as in a hit"
    )


class AnswerSentence(Message):
    """A sentence of an answer with the numbers of its citations."""

    text: str
    citations: list[int]


class Verdict(Message):
    """The decision of the validator."""

    approved: bool
    reason: Word[Reason]
    action: Word[Action] | None = Field(
        description="how the next attempt differs; null if approved, or if there is none"
    )
    confidence: float = Field(
        description="that the passages answer the question, in [0, 1]; approved at or above"
        " the setting agent.confidence_threshold"
    )


class Attempt(Message):
    """One pass through the graph, from its search to its verdict."""

    trace_id: str = Field(description="trace id of its search")
    action: Word[Action] | None = Field(description="how it differs from the previous attempt")
    query: str = Field(description="the query of its search")
    hits: int
    verdict: Verdict


class Usage(Message):
    """Tokens of the language model for this answer."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


class Answer(Message):
    """An answer with its citations, or the reason why there is none."""

    trace_id: str = Field(description="id of the answer for feedback and `/debug/trace`")
    collection: str
    thread_id: str | None
    question: str
    understood: str = Field(
        description="the question as it was searched, complete without the conversation"
    )
    answered: bool = Field(description="false: the documents have no answer, see `nearest`")
    text: str
    sentences: list[AnswerSentence]
    citations: list[Citation]
    nearest: list[Citation] = Field(description="the nearest passages if there is no answer")
    written_by: Word[Literal["extracts", "model"]] = Field(
        description="extracts: sentences of the documents; model: the language model"
    )
    model_left_out: str | None = Field(
        description="why a configured language model did not write the answer"
    )
    verdict: Verdict
    attempts: list[Attempt] = Field(description="in order; the last one made the answer")
    as_of: TimeClamp
    not_in_force: int | None = Field(
        default=None,
        description="documents with passages among the best ones that were left out because they"
        " are not in force at `as_of`; counted if there is no answer",
    )
    partial: bool = Field(description="true if a retriever did not answer")
    usage: Usage
    timings: dict[str, float] = Field(description="milliseconds by node, summed over all attempts")


class RecordedSentence(Message):
    """A sentence of a recorded answer with the numbers of its citations."""

    text: str | None = Field(description="null if the cited text is no longer stored")
    citations: list[int]


class RecordedCitation(Message):
    """A citation of a recorded answer."""

    number: int
    chunk_id: str
    document_id: str
    version: int = Field(description="the document's live version when the answer was made")
    quote: str | None = Field(description="null if the version's text is no longer stored")
    span: Span = Field(description="span of the quote in the extracted text")
    passage: Span = Field(description="span of the whole passage")
    pages: Pages | None = None
    boxes: list[Area] | None = None
    valid_from: datetime | None
    valid_to: datetime | None
    url: str | None
    source_url: str | None = None


class Source(Message):
    """A document that a recorded answer cites."""

    document_id: str
    filename: str
    live_version: int | None = Field(description="differs from a citation's after a new upload")
    citations: list[int] = Field(description="the numbers of its citations")


class RecordedAnswer(Message):
    """An answer as it was made, with its citations and sources.

    Citations of deleted documents are left out, with the sentences that have no other citation.
    """

    trace_id: str
    collection: str
    at: float = Field(description="seconds since 1970")
    question: str | None = Field(description="null unless the collection has `keep_queries`")
    as_of: str | None
    answered: bool
    written_by: Word[Literal["extracts", "model"]]
    verdict: Verdict
    sentences: list[RecordedSentence]
    citations: list[RecordedCitation]
    sources: list[Source]


class NodeMessage(Message):
    """An event of a stream: a node of the graph has run."""

    node: str
    attempt: int = Field(description="from 0; each action of the validator begins a new attempt")
    milliseconds: float
    facts: dict[str, Any] = Field(description="choices and counts of the node; never text")


class SentenceMessage(Message):
    """An event of a stream: a sentence of the answer, which the validator has approved."""

    text: str
    citations: list[Citation] = Field(description="numbered as in the answer")


class TurnMessage(Message):
    """A question of a conversation and its answer."""

    question: str
    understood: str = Field(
        description="the question as it was searched, complete without the conversation"
    )
    text: str
    answered: bool
    trace_id: str
    at: float = Field(description="seconds since 1970")


class Conversation(Message):
    """The questions and answers of one `thread_id`."""

    thread_id: str
    created_at: float
    asked_at: float
    turns: list[TurnMessage] = Field(description="the newest 20, oldest first")
