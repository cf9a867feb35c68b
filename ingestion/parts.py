"""What the steps of a document hand to each other."""

from dataclasses import dataclass, field
from typing import Literal

from models.entities import Entity


@dataclass(frozen=True)
class Heading:
    """A heading the format itself names: a span of the text and its level, 1 is the highest."""

    start: int
    end: int
    level: int


@dataclass(frozen=True)
class Page:
    """The span of one page of the original; numbers count from 1."""

    number: int
    start: int
    end: int


@dataclass(frozen=True)
class Block:
    """A span of whole lines that belong together: code, or a table with a row on each line.

    `header` is where a table's header rows end; `start` where it has none, and for code.
    """

    start: int
    end: int
    kind: Literal["table", "code"]
    header: int


@dataclass(frozen=True)
class Attachment:
    """A file within the file, to become a document of its own.

    `name` is a clean relative path. The content is handed over once and is in no artifact.
    """

    name: str
    sha256: str
    size: int
    content: bytes = b""


@dataclass(frozen=True)
class ExtractedText:
    """All text of one file. Every span below is into `text`, which is NFC with `\\n` line ends."""

    text: str
    media_type: str
    title: str | None = None
    headings: tuple[Heading, ...] = ()
    pages: tuple[Page, ...] = ()
    blocks: tuple[Block, ...] = ()
    properties: dict[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    attachments: tuple[Attachment, ...] = ()


@dataclass(frozen=True)
class Section:
    """A heading and what stands under it, up to the next heading.

    `start:end` holds the section's own text with its heading line, not its subsections'. Sections
    tile the text in order. `path` is the normalized headings from the top, joined by `/`, with
    `#2`, `#3` … behind a repeated one so that it is unique within a document.
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
    """A passage: `text[start:end]` is its content, always.

    `level` is its section's. Passages of one section, or of short ones that were taken together,
    have the same `stretch`, counted from 0. `header` is the span of the header of a table that the
    passage goes on with, empty for any other.
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
        """What is embedded and analyzed: the content, under the header of its table."""
        return self.header_of(text) + text[self.start : self.end]

    def header_of(self, text: str) -> str:
        """The header rows of the table that the passage goes on with, each with its line end."""
        rows = text[self.header[0] : self.header[1]].strip()
        return f"{rows}\n" if rows else ""


@dataclass(frozen=True)
class EnrichedChunk:
    """A chunk with what keyword search and filters need to know of it.

    `named` is what was recognized in its text alone, of which the names in `properties` are made.
    """

    chunk: Chunk
    lang: str
    terms: str
    properties: dict[str, str | list[str]]
    named: tuple[Entity, ...] = ()


@dataclass(frozen=True)
class Enriched:
    """The chunks of a document, and what was found out about it as a whole.

    The chunks' own properties win over the document's; what its file or its sender says wins over
    `facets`, which rules set. `title_terms` are the keyword terms of `title`, which count as every
    chunk's.
    """

    chunks: list[EnrichedChunk]
    facets: dict[str, str]
    properties: dict[str, str | list[str]]
    warnings: tuple[str, ...] = ()
    title: str = ""
    title_terms: str = ""
