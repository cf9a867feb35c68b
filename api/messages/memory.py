"""Requests and responses of the API about outcomes, memory and traces."""

from typing import Annotated

from pydantic import Field, field_validator

from callslip.api.messages.documents import Request
from callslip.messages.memory import ChunkId
from callslip.messages.memory import ChunkMemory as ChunkMemory
from callslip.messages.memory import Feedback as Feedback
from callslip.messages.memory import Forgotten as Forgotten
from callslip.messages.memory import MemoryLine as MemoryLine
from callslip.messages.memory import MemoryMessage as MemoryMessage
from callslip.messages.memory import TakenIn as TakenIn
from callslip.messages.memory import TraceMessage as TraceMessage
from callslip.stores import naming
from callslip.stores.chunk_stats import Verdict
from callslip.stores.properties.filters import is_unicode


class NewFeedback(Request):
    """A user's verdict about hits of a search."""

    trace_id: str = Field(
        pattern=r"^[0-9A-Za-z-]{1,64}$", description="the trace id of the response with the hits"
    )
    chunk_ids: list[ChunkId] = Field([], max_length=200, description="chunks of the judged hits")
    citations: list[Annotated[int, Field(ge=1)]] = Field(
        [],
        max_length=200,
        description="numbers of an answer's citations; without these and `chunk_ids`: all of them",
    )
    verdict: Verdict = Field(description="validated: by whoever checked an answer made of them")
    user: str = Field(
        "",
        max_length=128,
        description="on a server without keys any name, and all feedback without a name counts as"
        " one user's; else the caller is the user, and only a caller with the permission"
        " `delegate` may name another",
    )
    idempotency_key: str = Field(
        "",
        max_length=128,
        description="a repeated key has no effect; default: from search, verdict and chunks",
    )

    @field_validator("user", "idempotency_key")
    @classmethod
    def _is_text(cls, text: str) -> str:
        if not is_unicode(text):
            raise ValueError("is not valid Unicode")
        if "\0" in text:
            raise ValueError("has the control character U+0000")
        return text


class OfTenant(Request):
    """Selects a tenant, in a collection with tenants."""

    tenant: naming.Tenant = Field("", max_length=naming.LONGEST_TENANT)
