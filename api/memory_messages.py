"""What the desk takes and gives about outcomes, memory and traces."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator

from api.messages import Request
from stores import naming
from stores.chunk_stats import Verdict
from stores.filters import is_unicode

_ChunkId = Annotated[str, StringConstraints(max_length=64, pattern=r"^[^\x00]+$")]
_Count = Annotated[int, Field(ge=0, lt=2**31)]
_Time = Annotated[float, Field(ge=0, lt=1e11, allow_inf_nan=False)]


class NewFeedback(Request):
    """What somebody says of hits of a search."""

    trace_id: str = Field(
        pattern=r"^[0-9A-Za-z-]{1,64}$", description="of the answer that had the hits"
    )
    chunk_ids: list[_ChunkId] = Field([], max_length=200, description="of these hits")
    citations: list[Annotated[int, Field(ge=1)]] = Field(
        [],
        max_length=200,
        description="numbers of an answer's citations; without these and `chunk_ids`: all of them",
    )
    verdict: Verdict = Field(description="validated: by whoever checked an answer made of them")
    user: str = Field(
        "", max_length=128, description="who says so, by any name; all without one are one user"
    )
    idempotency_key: str = Field(
        "",
        max_length=128,
        description="the same again changes nothing; default: of search, verdict and chunks",
    )

    @field_validator("user", "idempotency_key")
    @classmethod
    def _is_text(cls, text: str) -> str:
        if "\0" in text or not is_unicode(text):
            raise ValueError("is not valid Unicode")
        return text


class Feedback(BaseModel):
    """Feedback as it was taken."""

    feedback_id: str
    trace_id: str
    collection: str
    tenant: str
    user: str
    verdict: Verdict
    at: float
    withdrawn_at: float | None
    chunk_ids: list[str]
    counted: list[str] = Field(
        description="those whose memory it changed: a user counts once a day for a chunk, and a"
        " document that is gone learns nothing"
    )


class ChunkMemory(BaseModel):
    """What is remembered of a chunk."""

    chunk_id: str
    document_id: str
    useful: int
    useless: int
    last_useful_at: float | None
    utility: float = Field(description="wins less losses, decayed to this moment")
    intents: dict[str, int]
    entities: dict[str, int] = Field(
        description="of the questions it answered; as hashes unless keep_queries is on"
    )
    questions: int


class MemoryMessage(BaseModel):
    """What a collection, or a tenant of it, has learned."""

    collection: str
    tenant: str
    changes: int = Field(description="grows with each change")
    chunks: int
    useful: int
    useless: int
    centre_of: int = Field(
        description="questions that the centre is the mean of; 0: too few are known"
    )
    memories: list[ChunkMemory] = Field(description="the greatest utility first")
    next_after: str | None = Field(description="send as `after` for the next page")


class OfTenant(Request):
    """Which tenant, in a collection with tenants."""

    tenant: naming.Tenant = Field("", max_length=naming.LONGEST_TENANT)


class Forgotten(BaseModel):
    """A reset."""

    chunks: int = Field(description="of so many nothing is remembered any more")


class MemoryLine(BaseModel):
    """A line of an export: all that is remembered of a chunk."""

    model_config = ConfigDict(extra="forbid", strict=True)

    chunk_id: _ChunkId
    document_id: str = Field(max_length=32)
    useful: _Count
    useless: _Count
    last_useful_at: _Time | None
    utility: float = Field(allow_inf_nan=False, description="as it was at utility_at")
    utility_at: _Time
    intents: dict[Annotated[str, StringConstraints(max_length=32)], _Count]
    entities: dict[Annotated[str, StringConstraints(max_length=200)], _Count]
    questions: _Count
    centroid: list[Annotated[float, Field(ge=-1, le=1)]] | None = Field(max_length=65_536)


class TakenIn(BaseModel):
    """An import."""

    chunks: int = Field(description="whose memory was replaced")
    unknown: int = Field(description="chunks that the collection does not have, left out")


class TraceMessage(BaseModel):
    """How a search came to its hits, and what was said of them since."""

    trace: dict[str, Any]
    outcomes: list[Feedback] = Field(description="oldest first, with the chunks whose memory moved")
