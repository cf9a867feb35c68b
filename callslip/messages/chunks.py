"""The chunks of documents, corrections of their text, and previews of cuts."""

from typing import Any

from pydantic import Field

from callslip.messages.base import Message, Word
from callslip.messages.search import Pages, Span
from callslip.vocabulary import LeftOut


class Correction(Message):
    """A correction of a document's extracted text."""

    correction_id: str
    before: str = Field(description="the text before the original, by which a new file is searched")
    original: str = Field(description="what the reader of the file found")
    replacement: str
    after: str = Field(description="the text after the original")
    made_at: float
    left_out: Word[LeftOut] | None = Field(
        description="why it does not apply to this version: `not-found`, `ambiguous`, or"
        " `already-right` where the file has the replacement; null if it applies"
    )


class Corrections(Message):
    """The corrections of a document's newest version, in the order in which they were made."""

    document_id: str
    version: int
    corrections: list[Correction]


class Chunk(Message):
    """A chunk of a live version, as the store has it."""

    chunk_id: str
    level: int = Field(description="0: the document, 1: a section, 2: a passage")
    parent_id: str | None
    ordinal: int
    section: str = Field(description="the path of its section: headings in lower case, with `/`")
    heading: str
    text: str
    span: Span | None = Field(
        description="in the extracted text; of provided chunks as their sender says, or null"
    )
    pages: Pages | None = None
    tokens: int | None = Field(
        description="with the header of its table; null for sections, documents and provided chunks"
    )
    lang: str
    terms: list[str] = Field(description="its terms in the keyword index, with those of the title")
    entities: list[str]
    facets: dict[str, Any] = Field(description="its values of the facets of the settings")
    properties: dict[str, Any] = Field(description="all its properties, for filters")
    stores: dict[str, list[str]] = Field(
        description="each store that has the collection, `:2` for its second side, with the indexes"
        " that have the chunk; while a collection moves there are two"
    )
    corrections: list[Correction] = Field(description="those that changed its text")


class Chunks(Message):
    """A page of the chunks of a document's live version, in order of the text."""

    document_id: str
    version: int
    count: int = Field(description="chunks on all pages")
    chunks: list[Chunk]
    next_after: str | None = Field(description="send as `after` for the next page")


class PreviewedChunk(Message):
    """A chunk that was cut and not stored."""

    ordinal: int
    section: str
    heading: str
    text: str
    header: str = Field(description="the header of the table that it continues, embedded with it")
    span: Span
    pages: Pages | None = None
    tokens: int


class ChunksPreview(Message):
    """How a text or file would be cut. Nothing of it is stored."""

    filename: str
    media_type: str
    title: str | None
    length: int = Field(description="characters of the extracted text")
    sections: int
    warnings: list[str]
    target_tokens: int
    max_tokens: int
    overlap_tokens: int
    count: int = Field(description="chunks in all, of which `chunks` has the first ones")
    tokens: int = Field(description="tokens of all chunks; an overlap counts twice")
    chunks: list[PreviewedChunk]
