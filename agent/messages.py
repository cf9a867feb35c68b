"""What is asked of the agent and what it answers, as it travels over HTTP and the queue."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from retrieval.messages import Moment, Span, Text, TimeClamp
from stores.filters import is_unicode
from stores.naming import Tenant

ThreadId = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$")]
"""Stands in paths, where `.` and `..` lead elsewhere."""

Action = Literal["DRILLDOWN", "RELAX", "PIVOT"]
"""What is done otherwise when an answer is not approved (specification 003, §7).

DRILLDOWN: only within the documents that came nearest. RELAX: wider, without what the ranking
leans on. PIVOT: other words, or the other leg.
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
"""Why a verdict is what it is.

supported: it is an answer. no-passages: nothing was found. not-in-force: a cited passage was not
in force at `as_of`. not-covered: the passages do not say what the question is about. not-apart:
other documents are as near. not-grounded: a sentence says what its passages do not. model-declined:
the language model found no answer in the passages.
"""


STAGES = {
    "planner": "searching",
    "rerank_diversify": "reading",
    "answerer": "checking",
}
"""What comes after a node has run, as a person is told while it takes its time."""


def _asks(question: str) -> str:
    if not is_unicode(question):
        raise ValueError("is not valid Unicode")
    if not any(map(str.isalnum, question)):
        raise ValueError("has no letter or digit")
    return question


class AnswerRequest(BaseModel):
    """A question that is to be answered from the documents of a collection."""

    model_config = ConfigDict(extra="forbid")

    collection: Text = Field(description="the collection to answer from")
    question: Annotated[str, AfterValidator(_asks)] = Field(
        min_length=1, description="in English or Korean", examples=["how long is parental leave?"]
    )
    tenant: Tenant | None = Field(None, description="whose documents; of a collection with tenants")
    thread_id: ThreadId | None = Field(
        None,
        description="names a conversation: a question that leans on earlier ones, as `and for"
        " twins?`, is understood by them",
    )
    as_of: Moment | None = Field(
        None,
        description="only what is in force then, as in a search",
        examples=["2020-03-31"],
    )
    having_all: dict[str, Any] | None = Field(
        None, description="conditions on passages that must all hold, as in a search"
    )
    having_any: dict[str, Any] | None = Field(
        None, description="conditions of which at least one must hold"
    )
    model: bool = Field(
        True,
        description="whether the language model writes, where one is set up; false: sentences of"
        " the documents",
    )


class Citation(BaseModel):
    """A passage that an answer rests on, and the sentence of it that says so."""

    number: int = Field(description="from 1; sentences name it")
    chunk_id: str
    document_id: str
    version: int = Field(description="of the document, live when this was answered")
    title: str
    filename: str
    section: str
    heading: str
    quote: str = Field(description="the sentence, word for word")
    span: Span = Field(description="of the quote in the document's extracted text")
    passage: Span = Field(description="of the whole passage")
    valid_from: datetime | None = Field(description="in force from; null: ever since")
    valid_to: datetime | None = Field(description="in force until, not included; null: open")
    url: str | None = Field(
        description="path of the page that shows it with the sentence marked; null where there is"
        " no text around the passage"
    )


class AnswerSentence(BaseModel):
    """A sentence of an answer with the numbers of what supports it."""

    text: str
    citations: list[int]


class Verdict(BaseModel):
    """What the validator said."""

    approved: bool
    reason: Reason
    action: Action | None = Field(
        description="what was to be done otherwise; null where approved, or nothing was left to try"
    )
    confidence: float = Field(
        description="that the passages answer the question, in [0, 1]; approved from"
        " agent.confidence_threshold of the settings on"
    )


class Attempt(BaseModel):
    """One way through the plan, from its search to its verdict."""

    trace_id: str = Field(description="of its search")
    action: Action | None = Field(description="what was done otherwise than before")
    query: str = Field(description="what was searched")
    hits: int
    verdict: Verdict


class Usage(BaseModel):
    """Tokens of the language model, for this answer."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


class Answer(BaseModel):
    """An answer with what supports it, or why there is none."""

    trace_id: str = Field(description="names it in feedback and in `/debug/trace`")
    collection: str
    thread_id: str | None
    question: str
    understood: str = Field(description="the question as it was searched, by itself")
    answered: bool = Field(description="false: not in these documents, see `nearest`")
    text: str
    sentences: list[AnswerSentence]
    citations: list[Citation]
    nearest: list[Citation] = Field(description="passages that came near, where nothing answered")
    written_by: Literal["extracts", "model"] = Field(
        description="extracts: sentences of the documents; model: the language model"
    )
    model_left_out: str | None = Field(
        description="why the language model did not write, where one is set up"
    )
    verdict: Verdict
    attempts: list[Attempt] = Field(description="in their order; the last one is what was answered")
    as_of: TimeClamp
    partial: bool = Field(description="true where a leg of the search did not answer")
    usage: Usage
    timings: dict[str, float] = Field(description="milliseconds by node, all attempts together")


class NodeMessage(BaseModel):
    """A node of the graph that has run, as a stream tells it."""

    node: str
    attempt: int = Field(description="from 0; each action of the validator begins another")
    milliseconds: float
    facts: dict[str, Any] = Field(description="what it chose and counted; never text")


class TurnMessage(BaseModel):
    """A question of a conversation and its answer."""

    question: str
    understood: str = Field(description="the question as it was searched, by itself")
    text: str
    answered: bool
    trace_id: str
    at: float = Field(description="seconds since 1970")


class Conversation(BaseModel):
    """What was asked under one `thread_id`."""

    thread_id: str
    created_at: float
    asked_at: float
    turns: list[TurnMessage] = Field(description="oldest first, the newest 20")
