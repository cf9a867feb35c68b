"""The format of archives: one collection in one tar file.

    collection.json              the description of the collection; the first member
    documents/ID/chunks.jsonl    the chunks, one per line, without their vectors
    documents/ID/vectors.npz     their vectors, in the same order
    documents/ID/blobs/NAME      the original and the extracted text of the live version
    documents/ID/memory.jsonl    reserved: the chunk memory, one chunk per line, by chunk id
    documents/ID/document.json   the ledger's rows; sizes and checksums of these files; always last
    end.json                     counts, tenants, probes; the last member of a complete archive

No member is compressed. So a reader can skip to a document without reading the earlier ones, and a
truncated archive is usable up to its last document.json.
"""

from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from callslip.messages.options import USUAL, Options
from callslip.stores.blobs import original_name
from callslip.stores.ledger import Transcript
from callslip.stores.records import VectorSpec
from callslip.stores.schemas import NAME
from callslip.stores.transfer.probes import DEPTH, PROBES, Probe

FORMAT = 1
"""Increase it if an older Callslip would lose or misread a part of the new format."""

FORMAT_WITH_READERS = 2
"""Of an archive with documents that have readers, so that an older Callslip refuses it."""

FORMAT_WITH_EMBEDDERS = 3
"""Of an archive with named vectors that have embedders, perhaps with readers too."""

FORMATS = (FORMAT, FORMAT_WITH_READERS, FORMAT_WITH_EMBEDDERS)

MAGIC = "callslip archive"
BLOCK = 1 << 20

LARGEST = {"chunks.jsonl": 1 << 29, "vectors.npz": 1 << 30}
LARGEST_JSON = 1 << 26
"""Maximum size in bytes of a member that is read into memory. The writer and the reader refuse a
larger member."""

MOST_FILES = 4
"""Files of one document: its chunks, their vectors, the original and the extracted text."""

MOST_NAMES = 50_000
"""Maximum number of property names: the ledger inserts them in one transaction."""


@dataclass(frozen=True)
class Head:
    """The description of the archived collection (collection.json)."""

    magic: str
    format: int
    name: Annotated[str, Field(pattern=NAME)]
    embedder: Annotated[str, Field(max_length=256)]
    analyzer: Annotated[str, Field(max_length=64)]
    store: str
    default: VectorSpec
    named: dict[Annotated[str, Field(pattern=NAME)], VectorSpec]
    tenants: bool
    created_at: float
    options: Options = USUAL


@dataclass(frozen=True)
class File:
    """A file of a document: its size in bytes and the SHA-256 of its content."""

    size: int
    sha256: str


@dataclass(frozen=True)
class Card:
    """The content of document.json: the document's ledger rows, its record, and its files."""

    transcript: Transcript
    title: str
    filename: str
    properties: dict[str, Any]
    vector_names: list[str]
    files: dict[str, File]


@dataclass(frozen=True)
class ProbeAnswers:
    """A probe and the answers of the exported collection."""

    probe: Probe
    answers: dict[str, Annotated[list[str], Field(max_length=DEPTH)]]


@dataclass(frozen=True)
class End:
    """The content of end.json, which describes the complete archive.

    `tenants` counts the documents and chunks of each tenant (key "" if the collection has no
    tenants). `changed` maps a document id to the version whose bundle is current; other bundles of
    that document are ignored. Documents in `gone` are ignored.
    """

    tenants: dict[Annotated[str, Field(max_length=128)], dict[str, int]]
    changed: dict[str, int]
    gone: list[str]
    left_out: int
    property_names: Annotated[
        list[Annotated[str, Field(max_length=128)]], Field(max_length=MOST_NAMES)
    ]
    keyword_score: str
    probes: Annotated[list[ProbeAnswers], Field(max_length=PROBES)] = field(default_factory=list)

    def counts(self, card: Card) -> bool:
        """Whether this bundle is the current one of its document."""
        transcript = card.transcript
        known = self.changed.get(transcript.document_id, transcript.live_version)
        return transcript.document_id not in self.gone and known == transcript.live_version


HEAD, CARD, END = TypeAdapter(Head), TypeAdapter(Card), TypeAdapter(End)


def blob_names(transcript: Transcript) -> list[str]:
    """The blob names of the live version: its original, and its extracted text if there is one."""
    texts = [s.artifact for s in transcript.steps if s.artifact is not None]
    return [original_name(transcript.live.sha256), *texts]


def largest(member: str) -> int:
    return LARGEST.get(member.rpartition("/")[2], LARGEST_JSON)


def forget_members(tar: Any) -> None:
    """Clear the list of members that a TarFile caches, so that its memory stays bounded."""
    tar.members.clear()
