"""Feedback, memory and traces."""

from typing import Annotated, Any

from pydantic import ConfigDict, Field, StringConstraints

from callslip.messages.base import Message, Word
from callslip.vocabulary import Verdict

ChunkId = Annotated[str, StringConstraints(max_length=64, pattern=r"^[^\x00]+$")]
_Count = Annotated[int, Field(ge=0, lt=2**31)]
_Time = Annotated[float, Field(ge=0, lt=1e11, allow_inf_nan=False)]


class Feedback(Message):
    """Recorded feedback."""

    feedback_id: str
    trace_id: str
    collection: str
    tenant: str
    user: str
    verdict: Word[Verdict]
    at: float
    withdrawn_at: float | None
    chunk_ids: list[str]
    counted: list[str] = Field(
        description="chunks whose memory it changed: a user counts once a day for a chunk, and a"
        " removed document has no memory"
    )


class ChunkMemory(Message):
    """The memory of a chunk."""

    chunk_id: str
    document_id: str
    useful: int
    useless: int
    last_useful_at: float | None
    utility: float = Field(description="wins minus losses, decayed to the present")
    intents: dict[str, int]
    entities: dict[str, int] = Field(
        description="entities of the questions that it answered; hashes unless keep_queries is on"
    )
    questions: int


class MemoryMessage(Message):
    """The memory of a collection or of one of its tenants."""

    collection: str
    tenant: str
    changes: int = Field(description="grows by each change")
    chunks: int
    useful: int
    useless: int
    centre_of: int = Field(
        description="number of questions whose mean is the centre; 0: there are too few questions"
    )
    memories: list[ChunkMemory] = Field(description="the greatest utility first")
    next_after: str | None = Field(description="send as `after` for the next page")


class Forgotten(Message):
    """The result of a reset."""

    chunks: int = Field(description="number of chunks whose memory was deleted")


class MemoryLine(Message):
    """A line of an export: the whole memory of a chunk."""

    model_config = ConfigDict(extra="forbid", strict=True)

    chunk_id: ChunkId
    document_id: str = Field(max_length=32)
    useful: _Count
    useless: _Count
    last_useful_at: _Time | None
    utility: float = Field(allow_inf_nan=False, description="its value at utility_at")
    utility_at: _Time
    intents: dict[Annotated[str, StringConstraints(max_length=32)], _Count]
    entities: dict[Annotated[str, StringConstraints(max_length=200)], _Count]
    questions: _Count
    centroid: list[Annotated[float, Field(ge=-1, le=1)]] | None = Field(max_length=65_536)


class TakenIn(Message):
    """The result of an import."""

    chunks: int = Field(description="number of chunks whose memory was replaced")
    unknown: int = Field(description="number of skipped chunks, which the collection does not have")


class TraceMessage(Message):
    """The trace of a search, and the later feedback about its hits."""

    trace: dict[str, Any]
    outcomes: list[Feedback] = Field(description="oldest first, with the changed chunks")
