"""Batches: documents that are sent together."""

from pydantic import Field

from callslip.messages.base import Message, Word
from callslip.messages.problems import FailureMessage
from callslip.vocabulary import ItemState


class BatchDocument(Message):
    """One document of a batch."""

    document_id: str
    version: int
    collection: str
    name: str
    state: Word[ItemState]
    unchanged: bool = Field(description="its content was stored already")
    error: "FailureMessage | None"


class BatchDocuments(Message):
    """A page of a batch's documents."""

    documents: list[BatchDocument]
    next_after: str | None = Field(description="send as `after` for the next page")


class Batch(Message):
    """The progress of documents that were sent together."""

    batch_id: str
    created_at: float
    started_at: float | None = Field(description="when the first document was submitted")
    expected: int | None
    submitted: int
    unchanged: int = Field(description="how many of these were stored already with this content")
    states: dict[Word[ItemState], int] = Field(description="documents by state")
    left: int = Field(description="unfinished documents, of the expected number if it is known")
    seconds: float | None = Field(description="from the first submission to now, or to the end")
    documents_per_minute: float | None = Field(
        description="documents that became live, over the last five minutes; null if none"
    )
    chunks_per_minute: float | None
    seconds_left: float | None = Field(description="at the rate of these minutes; null if unknown")
    failures: list[BatchDocument] = Field(description="the first failed documents")
