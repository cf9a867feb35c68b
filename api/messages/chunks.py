"""Requests and responses of the API about chunks."""

from typing import Annotated

from pydantic import Field

from callslip.api.messages.documents import CutRequest, Request
from callslip.messages.chunks import Chunk as Chunk
from callslip.messages.chunks import Chunks as Chunks
from callslip.messages.chunks import ChunksPreview as ChunksPreview
from callslip.messages.chunks import Correction as Correction
from callslip.messages.chunks import Corrections as Corrections
from callslip.messages.values import OptionalWhole, Whole
from callslip.stores import naming
from callslip.stores.ledger.base.corrections import LONGEST_TEXT

MOST_CORRECTED = 200
"""The maximum chunks that one request corrects."""

MOST_PREVIEWED = 1000
"""The maximum chunks of a preview's response."""


ChunkId = Annotated[str, Field(min_length=1, max_length=200)]


class ChunksQuery(Request):
    """Selects a page of chunks."""

    limit: Whole = Field(50, ge=1, le=500)
    after: str | None = Field(
        None,
        pattern=r"^-?[0-9]{1,10}\.-?[0-9]{1,10}\..{1,200}$",
        description="`next_after` of the previous page",
    )
    parents: bool = Field(
        False, description="also the sections and the document, which are chunks too"
    )


class NewCorrections(Request):
    """Corrections of passages of the newest version, which make one new version."""

    texts: dict[ChunkId, Annotated[str, Field(max_length=LONGEST_TEXT)]] = Field(
        min_length=1,
        max_length=MOST_CORRECTED,
        description="the whole corrected text of each passage, by its chunk_id",
    )
    version: int | None = Field(
        None,
        ge=1,
        le=10**9,
        description="the version whose chunks were read; 409 if it is not the newest one by now",
    )


class Cut(CutRequest):
    """How a preview cuts; lengths that are left out are those of the settings."""

    tenant: naming.Tenant = Field(
        "",
        max_length=naming.LONGEST_TENANT,
        description="a tenant of the caller; required of callers that are limited to tenants",
    )
    target_tokens: OptionalWhole = Field(
        None, ge=32, le=100_000, description="the length that chunks should have"
    )
    limit: Whole = Field(100, ge=1, le=MOST_PREVIEWED, description="the most chunks to return")


class PreviewText(Cut):
    """A text to cut."""

    text: str = Field(min_length=1, description="the whole text; it may have Markdown headings")
    name: str = Field(
        "text.md", min_length=1, max_length=1024, description="its ending tells the format"
    )


class PreviewForm(Cut):
    """A file to cut (multipart/form-data)."""

    file: str = Field(json_schema_extra={"format": "binary"})
