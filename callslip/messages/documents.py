"""Documents with their steps, versions, events and texts."""

from typing import Any, Literal

from pydantic import Field

from callslip.messages.base import Message, Word
from callslip.messages.problems import FailureMessage
from callslip.vocabulary import (
    DocumentState,
    EventKind,
    ShownVersionState,
    Step,
    StepState,
    VersionOrigin,
    in_force,
)


class Submitted(Message):
    """The result of a submission."""

    outcome: Word[Literal["accepted", "unchanged"]]
    document_id: str
    version: int
    task_id: str
    status_url: str
    task_url: str


class Unchanged(Message):
    """The documents whose submission would change nothing, by the names in the request."""

    documents: list[str]


class StepMessage(Message):
    """The progress of one step."""

    step: str
    state: Word[StepState]
    attempts: int
    crashes: int
    seconds: float | None
    worker: str | None
    counts: dict[str, int]
    retry_in_seconds: float | None
    error: FailureMessage | None


class Document(Message):
    """A document with its newest version and that version's steps."""

    document_id: str
    collection: str
    tenant: str
    name: str
    parent: str | None = Field(description="id of the document, such as a mail, that contained it")
    title: str
    filename: str
    size: int
    sha256: str
    version: int
    live_version: int | None = Field(
        description="the version that searches see; null if none is live"
    )
    state: Word[DocumentState] = Field(
        description="waiting: for a free worker; stalled: without a worker until the next sweep"
    )
    created_at: float
    submitted_at: float
    finished_at: float | None
    properties: dict[str, Any]
    url: str | None = Field(None, description="the web address of its source")
    language: str | None = Field(None, description="as stated; null: recognised in each passage")
    valid_from: str | None = Field(
        default=None,
        description="the first day on which the live version is in force, as stated or recognised;"
        " null: none",
    )
    valid_to: str | None = Field(
        default=None, description="the first day on which the live version is no longer in force"
    )
    steps: list[StepMessage]
    warnings: list[str] = Field([], description="what was left out, or read in another way")
    error: FailureMessage | None
    readers: list[str] | None = Field(
        None, description="who may read it: `user:NAME`, `group:NAME`; null: everyone"
    )
    etag: str = Field(
        "", description="as the header `ETag` has it, in quotes: send it as `If-Match` with a PATCH"
    )
    receipt: dict[str, dict[str, int]] | None = Field(
        description="after a deletion: objects in each store before and after"
    )

    def in_force(self) -> str:
        """Return the days in words; empty without any."""
        return in_force(self.valid_from, self.valid_to)


class Documents(Message):
    """A page of documents, newest first."""

    documents: list[Document]
    states: dict[str, int] = Field(description="documents of the collection by ledger state")
    next_before: float | None = Field(description="send as `before` for the next page")


class CutCounts(Message):
    """The number of chunks of a text, and their lengths in tokens of the embedder."""

    chunks: int
    tokens: int
    longest: int


class CutChunk(Message):
    """A chunk as other lengths cut it: `text[start:end]` of the document's text."""

    heading: str
    start: int
    end: int
    tokens: int


class CutPreview(Message):
    """How other lengths would cut a document; nothing is stored."""

    document_id: str
    version: int
    target_tokens: int
    max_tokens: int = Field(
        description="the longest chunk; less than the request's if the embedder reads less"
    )
    overlap_tokens: int
    now: CutCounts
    then: CutCounts
    unchanged: int = Field(description="chunks that would keep their ids and vectors")
    chunks: list[CutChunk]


class VersionMessage(Message):
    """A current or previous content of a document."""

    version: int
    state: Word[ShownVersionState] = Field(
        description="live: what searches see; deleted: what they saw before the deletion"
    )
    origin: Word[VersionOrigin] = Field(
        "submitted",
        description="how it was made; restored: by a rollback",
    )
    submitted_at: float
    finished_at: float | None
    sha256: str
    size: int
    filename: str
    title: str
    properties: dict[str, Any]
    url: str | None = None
    language: str | None = None
    counts: dict[str, dict[str, int]] = Field(description="counts of each step")
    warnings: list[str] = Field([], description="what was left out, or read in another way")
    superseded_by: int | None = Field(description="the version that replaced it")
    restores: int | None = Field(description="of a rollback: the restored version")
    edited: list[str] | None = Field(
        None,
        description="of an edit (PATCH): what it changed, such as `title` or `properties.topic`",
    )
    corrections_added: int | None = Field(
        None, description="of a correction: the number that it added to those before"
    )
    chunking: dict[str, int] | None = Field(
        None, description="lengths of its chunks, since a cut; null: those of the settings"
    )
    error: FailureMessage | None


class Versions(Message):
    """The history of a document, newest version first."""

    document_id: str
    name: str
    live_version: int | None
    versions: list[VersionMessage]


class Event(Message):
    """One change of a document."""

    event_id: int
    kind: Word[EventKind]
    document_id: str
    collection: str
    tenant: str
    version: int | None
    step: Word[Step] | None
    at: float
    data: dict[str, Any] | None = Field(
        description="counts or attempt of a step, warnings, the error, or a deletion's receipt"
    )


class StreamEnd(Message):
    """The end of a stream, with the document's state."""

    state: str


class TextSlice(Message):
    """A part of a document's extracted text."""

    document_id: str
    start: int
    end: int
    length: int = Field(description="length of the whole text")
    text: str


class Task(Message):
    """One submission or deletion."""

    task_id: str
    kind: Word[Literal["ingest", "delete"]]
    document_id: str
    version: int | None
    state: Word[Literal["waiting", "working", "stalled", "done", "failed", "superseded"]]
    steps_done: int
    steps: int
    error: FailureMessage | None


class Deleted(Message):
    """A started deletion: the document is hidden already, and removed soon."""

    document_id: str
    task_id: str
    task_url: str
    status_url: str
