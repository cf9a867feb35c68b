"""An archive: one collection in one tar file.

    collection.json              what the collection is; the first member
    documents/ID/chunks.jsonl    the chunks, one a line, all but their vectors
    documents/ID/vectors.npz     their vectors, in the same order
    documents/ID/blobs/NAME      the original and the extracted text of the live version
    documents/ID/memory.jsonl    reserved: what was learned about chunks, by chunk id, one a line
    documents/ID/document.json   what the ledger says, sizes and checksums of the above; always last
    end.json                     counts, tenants, probes; the last member: the archive is whole

Nothing is compressed, so that a document is found without reading those before it, and a file that
was cut off is whole up to its last document.json.
"""

import io
import re
import tarfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Annotated, Any, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from callslip.errors import ArchiveError, MoveError
from stores.blobs import original_name
from stores.checks import chunk_fault, document_fault
from stores.ledger import STEPS, Transcript
from stores.options import USUAL, Options
from stores.records import CollectionSchema, DocumentRecord, VectorSpec
from stores.schemas import NAME
from stores.transfer.contents import Content, decode, encode
from stores.transfer.headers import check_headers
from stores.transfer.parcel import Parcel
from stores.transfer.probes import DEPTH, PROBES, Probe
from stores.transfer.streams import Checked, Hashing

FORMAT = 1
"""Raised when an older Callslip would lose something of an archive, or misread it."""

MAGIC = "callslip archive"
BLOCK = 1 << 20

LARGEST = {"chunks.jsonl": 1 << 29, "vectors.npz": 1 << 30}
LARGEST_JSON = 1 << 26
"""Bytes of the members that are read whole; neither written nor read where they are larger."""

MOST_FILES = 4
"""Of a document: its chunks, their vectors, the original and the extracted text."""

_MEMBER = re.compile(
    r"documents/(?P<id>[0-9a-f]{32})/"
    r"(?P<file>chunks\.jsonl|vectors\.npz|document\.json|blobs/[0-9A-Za-z_-][0-9A-Za-z._-]{0,255})"
)

MOST_NAMES = 50_000
"""Of properties: the ledger takes them in one transaction."""

T = TypeVar("T")


@dataclass(frozen=True)
class Head:
    """What the archived collection is."""

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
    """A file of a document: its bytes and their SHA-256."""

    size: int
    sha256: str


@dataclass(frozen=True)
class Card:
    """What document.json holds: what the ledger and the store say of a document, and its files."""

    transcript: Transcript
    title: str
    filename: str
    properties: dict[str, Any]
    vector_names: list[str]
    files: dict[str, File]


@dataclass(frozen=True)
class Asked:
    """A probe and what the exported collection answered."""

    probe: Probe
    answers: dict[str, Annotated[list[str], Field(max_length=DEPTH)]]


@dataclass(frozen=True)
class End:
    """What is in the archive, seen from its end.

    `tenants` counts documents and chunks ("" where there are none). Of a document in `changed` only
    the parcel of that version counts; one in `gone` does not count.
    """

    tenants: dict[Annotated[str, Field(max_length=128)], dict[str, int]]
    changed: dict[str, int]
    gone: list[str]
    left_out: int
    property_names: Annotated[
        list[Annotated[str, Field(max_length=128)]], Field(max_length=MOST_NAMES)
    ]
    keyword_score: str
    probes: Annotated[list[Asked], Field(max_length=PROBES)] = field(default_factory=list)

    def counts(self, card: Card) -> bool:
        """Whether this parcel is the one of its document that is meant."""
        transcript = card.transcript
        known = self.changed.get(transcript.document_id, transcript.live_version)
        return transcript.document_id not in self.gone and known == transcript.live_version


HEAD, CARD, END = TypeAdapter(Head), TypeAdapter(Card), TypeAdapter(End)


class Writer:
    """Appends to an archive, from where the file stands."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._tar = tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT)  # noqa: SIM115

    def head(self, head: Head) -> None:
        """Say what the collection is."""
        self._add("collection.json", HEAD.dump_json(head, indent=1))

    def document(self, parcel: Parcel, blobs: Mapping[str, tuple[int, IO[bytes]]]) -> None:
        """Append a document and its blobs (size and content by name).

        MoveError where it cannot come back: it is too large, or its original is another file.
        """
        transcript = parcel.transcript
        folder = f"documents/{transcript.document_id}"
        content = encode(parcel.chunks)
        files = {
            "chunks.jsonl": self._add(f"{folder}/chunks.jsonl", content.lines),
            "vectors.npz": self._add(f"{folder}/vectors.npz", content.vectors),
        }
        for name, (size, stream) in blobs.items():
            files[f"blobs/{name}"] = self._stream(f"{folder}/blobs/{name}", size, stream)
        if files[f"blobs/{original_name(transcript.live.sha256)}"].sha256 != transcript.live.sha256:
            raise MoveError(
                f"the original of document {transcript.document_id} in the blob store is damaged",
                hint="Submit the document again, or delete it; then export again.",
            )
        card = Card(
            transcript=transcript,
            title=parcel.record.title,
            filename=parcel.record.filename,
            properties=dict(parcel.record.properties),
            vector_names=list(content.vector_names),
            files=files,
        )
        self._add(f"{folder}/document.json", CARD.dump_json(card))

    def end(self, end: End) -> None:
        """Say that the archive is whole; MoveError where it could not be read again."""
        if len(end.property_names) > MOST_NAMES:
            raise MoveError(
                f"the collection has {len(end.property_names):,} names of properties,"
                f" an archive keeps {MOST_NAMES:,}",
                hint="Submit its documents with fewer names to another collection.",
            )
        self._add("end.json", END.dump_json(end, indent=1))
        self._tar.close()

    def _add(self, name: str, content: bytes) -> File:
        if len(content) > _largest(name):
            raise MoveError(
                f"{name} would have {len(content):,} bytes in an archive,"
                f" at most {_largest(name):,} can be read again",
                hint="Submit what is in it as several documents; then export again.",
            )
        return self._stream(name, len(content), io.BytesIO(content))

    def _stream(self, name: str, size: int, stream: IO[bytes]) -> File:
        member = tarfile.TarInfo(name)
        member.size, member.mtime, member.mode = size, int(time.time()), 0o600
        hashing = Hashing(stream)
        self._tar.addfile(member, hashing)
        _forget_members(self._tar)
        return File(size, hashing.digest.hexdigest())


class Entry:
    """A document in an archive."""

    def __init__(
        self, tar: tarfile.TarFile, card: Card, members: Mapping[str, tarfile.TarInfo], end: int
    ) -> None:
        self.card = card
        self.end = end
        self._tar, self._members = tar, members

    @property
    def document_id(self) -> str:
        """Of the document."""
        return self.card.transcript.document_id

    def parcel(self, schema: CollectionSchema) -> Parcel:
        """The document; ArchiveError unless everything of it is sound, its blobs included."""
        for name in self.blob_names():
            with self.blob(name) as stream:
                while stream.read(BLOCK):
                    pass
        content = Content(
            self._read("chunks.jsonl"), self._read("vectors.npz"), tuple(self.card.vector_names)
        )
        transcript, card = self.card.transcript, self.card
        try:
            chunks = decode(content, self.document_id)
        except (ValueError, KeyError, RecursionError, MemoryError) as error:
            raise self.damaged(f"its chunks cannot be read ({type(error).__name__})") from None
        ids = [chunk.chunk_id for chunk in chunks]
        if len(set(ids)) < len(ids) or set(ids) != transcript.chunks.keys():
            raise self.damaged("its chunks are not those that document.json counts")
        record = DocumentRecord(self.document_id, card.title, card.filename, card.properties)
        versions = (replace(record, properties=v.properties) for v in transcript.versions)
        faults = [
            *(chunk_fault(chunk, schema) for chunk in chunks),
            *(document_fault(document) for document in (record, *versions)),
        ]
        if fault := next(filter(None, faults), None):
            raise self.damaged(fault)
        return Parcel(transcript, record, tuple(chunks))

    def blob_names(self) -> list[str]:
        """Of the files that go to the blob store."""
        return [n.removeprefix("blobs/") for n in self._members if n.startswith("blobs/")]

    def blob(self, name: str) -> Checked:
        """A blob as a stream that raises ArchiveError at its end where it is damaged."""
        return self._open(f"blobs/{name}")

    def damaged(self, what: str) -> ArchiveError:
        """The error that names this document."""
        return ArchiveError(f"document {self.document_id} of the archive is damaged: {what}")

    def _read(self, name: str) -> bytes:
        with self._open(name) as stream:
            return b"".join(iter(lambda: stream.read(BLOCK), b""))

    def _open(self, name: str) -> Checked:
        stream = self._tar.extractfile(self._members[name])
        assert stream is not None  # noqa: S101 - only regular files are members
        file, error = self.card.files[name], self.damaged(f"{name} has another checksum")
        return Checked(stream, file.size, file.sha256, error)


class Archive:
    """A file to be read. ArchiveError where it is no archive that this Callslip understands."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._size = path.stat().st_size
        self._file = path.open("rb")
        try:
            check_headers(self._file, 0)
            self._file.seek(0)
            self._tar = tarfile.open(fileobj=self._file, mode="r:")  # noqa: SIM115 - see close()
        except (tarfile.TarError, OSError, ValueError) as error:
            self._file.close()
            raise ArchiveError(f"{path.name} is no archive of Callslip: {_told(error)}") from None
        self.whole: End | None = None
        """What the end says, once the end was read."""
        try:
            member = self._next()
            if member is None or member.name != "collection.json":
                raise ArchiveError(f"{path.name} is no archive of Callslip")
            self.head = self._head(member)
            self.start = self._tar.offset
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Give the file back."""
        self._tar.close()
        self._file.close()

    def entries(self) -> Iterator[Entry]:
        """Its documents in order, up to the end or to where the file was cut off.

        `whole` says which of the two it was. Only their document.json was read; ArchiveError
        where anything stands where it must not.
        """
        self._tar.offset = self.start
        self.whole = None
        members: dict[str, tarfile.TarInfo] = {}
        document_id = ""
        while (member := self._next()) is not None:
            if self.whole is not None:
                raise self._damaged("something follows its end")
            if member.name == "end.json" and not members:
                self.whole = self._json(member, END, "end.json")
                continue
            parts = _MEMBER.fullmatch(member.name)
            if parts is None or (members and parts["id"] != document_id):
                raise self._damaged(f"it has no place for a member {member.name[:80]!r}")
            document_id = parts["id"]
            if parts["file"] in members:
                raise self._damaged(f"two members are {member.name!r}")
            if parts["file"] != "document.json":
                if len(members) == MOST_FILES:
                    raise self._damaged(f"document {document_id} has too many files")
                if not parts["file"].startswith("blobs/"):
                    self._check_size(member)
                members[parts["file"]] = member
                continue
            card = self._json(member, CARD, member.name)
            _check_card(card, document_id, members, self._damaged)
            yield Entry(self._tar, card, members, self._tar.offset)
            members = {}

    def end(self) -> End:
        """What the end says; ArchiveError where the file was cut off. Documents are looked over."""
        for _ in self.entries():
            pass
        if self.whole is None:
            raise ArchiveError(f"{self.path.name} is cut off: its end is missing")
        return self.whole

    def _next(self) -> tarfile.TarInfo | None:
        """The next member; None at the end and where the file was cut off."""
        try:
            check_headers(self._file, self._tar.offset)
            member = self._tar.next()
        except (tarfile.TarError, EOFError):
            return None
        except (ValueError, OverflowError, OSError) as error:
            raise self._damaged(_told(error)) from None
        _forget_members(self._tar)
        if member is None or member.offset_data + member.size > self._size:
            return None
        if not member.isreg() or member.issparse() or member.size < 0:
            raise self._damaged(f"{member.name[:80]!r} is not a plain file")
        return member

    def _head(self, member: tarfile.TarInfo) -> Head:
        head = self._json(member, HEAD, "collection.json")
        if head.magic != MAGIC:
            raise ArchiveError(f"{self.path.name} is no archive of Callslip")
        if head.format != FORMAT:
            raise ArchiveError(
                f"{self.path.name} has format {head.format}, this Callslip reads {FORMAT}",
                hint="Import it with the version of Callslip that made it, or a newer one.",
            )
        return head

    def _json(self, member: tarfile.TarInfo, adapter: TypeAdapter[T], name: str) -> T:
        self._check_size(member)
        stream = self._tar.extractfile(member)
        assert stream is not None  # noqa: S101 - only regular files are members
        try:
            return adapter.validate_json(stream.read(), strict=True)
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            place = ".".join(str(part)[:40] for part in first["loc"])
            raise self._damaged(f"{name} is not as it must be: {place} {first['type']}") from None
        except (ValueError, RecursionError, MemoryError, OverflowError) as error:
            raise self._damaged(f"{name}: {type(error).__name__}") from None

    def _check_size(self, member: tarfile.TarInfo) -> None:
        if member.size > _largest(member.name):
            raise self._damaged(f"{member.name} has more than {_largest(member.name):,} bytes")

    def _damaged(self, what: str) -> ArchiveError:
        return ArchiveError(f"{self.path.name} is damaged: {what}")


def _check_card(card: Card, document_id: str, members: Mapping[str, Any], damaged: Any) -> None:
    transcript = card.transcript
    live = [v for v in transcript.versions if v.state == "live"]
    wrong = (
        transcript.document_id != document_id
        or card.files.keys() != members.keys()
        or not {"chunks.jsonl", "vectors.npz"} <= members.keys()
        or any(file.size != members[name].size for name, file in card.files.items())
        or [v.version for v in live] != [transcript.live_version]
        or len({v.version for v in transcript.versions}) != len(transcript.versions)
        or max(v.version for v in transcript.versions) != transcript.live_version
        or [s.step for s in transcript.steps] != list(STEPS)
        or any(step.artifact is not None for step in transcript.steps if step.step != "extract")
        or any(c.first_version > transcript.live_version for c in transcript.chunks.values())
        or "\0" in "".join((transcript.name, *(v.title + v.filename for v in transcript.versions)))
    )
    if wrong:
        raise damaged(f"document.json of {document_id} does not fit what is there")
    names = blob_names(transcript)
    if sorted(f"blobs/{name}" for name in names) != sorted(members.keys() - LARGEST.keys()):
        raise damaged(f"document {document_id} has other files than its original and its text")
    if card.files[f"blobs/{names[0]}"].sha256 != transcript.live.sha256:
        raise damaged(f"the original of document {document_id} is not that of its live version")


def blob_names(transcript: Transcript) -> list[str]:
    """The original of the live version, and its extracted text where it has one."""
    texts = [s.artifact for s in transcript.steps if s.artifact is not None]
    return [original_name(transcript.live.sha256), *texts]


def _largest(member: str) -> int:
    return LARGEST.get(member.rpartition("/")[2], LARGEST_JSON)


def _forget_members(tar: Any) -> None:
    """It remembers all that it has seen."""
    tar.members.clear()


def _told(error: Exception) -> str:
    return str(error)[:80] or type(error).__name__
