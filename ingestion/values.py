"""The values that the ingestion steps pass to each other."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import PlainSerializer, PlainValidator

from callslip.ingestion.boxes import Box, pack, packed
from callslip.models.entities import Entity
from callslip.vocabulary import LeftOut


@dataclass(frozen=True)
class Heading:
    """A heading that the format marks: a span of the text and its level, 1 is the highest.

    `anchor` is its id within the page of the original; empty if the page or heading has none.
    """

    start: int
    end: int
    level: int
    anchor: str = ""


@dataclass(frozen=True)
class Page:
    """The span of one page of the original; numbers count from 1.

    `label` is the number that is printed on the page, or a sheet's name; empty if there is none.
    """

    number: int
    start: int
    end: int
    label: str = ""


@dataclass(frozen=True)
class Block:
    """A span of whole lines that belong together: code, or a table with a row on each line.

    `header` is the end of a table's header rows; it equals `start` for code or without header rows.
    """

    start: int
    end: int
    kind: Literal["table", "code"]
    header: int


@dataclass(frozen=True)
class Link:
    """The span of a link's words, and its target as the source has it."""

    start: int
    end: int
    target: str


@dataclass(frozen=True)
class Attachment:
    """A file within the file, which becomes a document of its own.

    `name` is a clean relative path. The content is passed on once and is not part of any artifact.
    """

    name: str
    sha256: str
    size: int
    content: bytes = b""


@dataclass(frozen=True)
class CorrectionOutcome:
    """What became of a correction: `text[start:end]` is its replacement, or it is left out."""

    start: int
    end: int
    left_out: LeftOut | None = None


@dataclass(frozen=True)
class ExtractedText:
    """All text of one file. All spans refer to `text`, which is NFC with `\\n` line ends.

    `boxes` has the lines of a PDF in the order of the text. `corrections` has what became of the
    version's corrections, in their order.
    """

    text: str
    media_type: str
    title: str | None = None
    headings: tuple[Heading, ...] = ()
    pages: tuple[Page, ...] = ()
    blocks: tuple[Block, ...] = ()
    links: tuple[Link, ...] = ()
    properties: dict[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    boxes: Annotated[
        Sequence[Box], PlainSerializer(pack, return_type=str), PlainValidator(packed)
    ] = ()
    corrections: tuple[CorrectionOutcome, ...] = ()


@dataclass(frozen=True)
class Section:
    """A heading and the text under it, up to the next heading.

    `start:end` is the section's own text with its heading line, without its subsections. Sections
    tile the text in order. `path` is the normalized headings from the top, joined by `/`, with
    `#2`, `#3` … after a repeated path, so that a path is unique within a document.
    """

    path: str
    heading: str
    level: int
    order: int
    start: int
    end: int
    parent: str | None


@dataclass(frozen=True)
class Chunk:
    """A passage; its content is always `text[start:end]`.

    `level` is its section's. Passages of one section, or of several short sections that were
    merged, have the same `stretch`, counted from 0. `header` is the span of the table header if the
    passage continues a table, else empty.
    """

    chunk_id: str
    section: str
    heading: str
    level: int
    ordinal: int
    start: int
    end: int
    tokens: int
    stretch: int = 0
    header: tuple[int, int] = (0, 0)

    def read(self, text: str) -> str:
        """The text that is embedded and analyzed: the content, below the header of its table."""
        return self.header_of(text) + text[self.start : self.end]

    def header_of(self, text: str) -> str:
        """The header rows of the table that the passage continues, each with its line end."""
        rows = text[self.header[0] : self.header[1]].strip()
        return f"{rows}\n" if rows else ""


@dataclass(frozen=True)
class EnrichedChunk:
    """A chunk with its data for keyword search and filters.

    `named` are the entities recognized in its text alone; the names in `properties` come from them.
    """

    chunk: Chunk
    lang: str
    terms: str
    properties: dict[str, str | list[str]]
    named: tuple[Entity, ...] = ()


@dataclass(frozen=True)
class Enriched:
    """The chunks of a document, and the data of the document as a whole.

    Properties of a chunk override those of the document. Properties from the file or the sender
    override `facets`, which rules set. `title_terms` are the keyword terms of `title`, which count
    as terms of every chunk.
    """

    chunks: list[EnrichedChunk]
    facets: dict[str, str]
    properties: dict[str, str | list[str]]
    warnings: tuple[str, ...] = ()
    title: str = ""
    title_terms: str = ""
