"""Reads archives, and validates every member before its content is used."""

import re
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from callslip.errors import ArchiveError
from callslip.stores.ledger import STEPS
from callslip.stores.properties.checks import chunk_fault, document_fault
from callslip.stores.records import CollectionSchema, DocumentRecord, for_audience
from callslip.stores.transfer.archive_format import (
    BLOCK,
    CARD,
    END,
    FORMATS,
    HEAD,
    LARGEST,
    MAGIC,
    MOST_FILES,
    Card,
    End,
    Head,
    blob_names,
    forget_members,
    largest,
)
from callslip.stores.transfer.bundle import DocumentBundle
from callslip.stores.transfer.contents import Content, decode
from callslip.stores.transfer.streams import Checked
from callslip.stores.transfer.tar_headers import check_headers

_MEMBER = re.compile(
    r"documents/(?P<id>[0-9a-f]{32})/"
    r"(?P<file>chunks\.jsonl|vectors\.npz|document\.json|blobs/[0-9A-Za-z_-][0-9A-Za-z._-]{0,255})"
)

T = TypeVar("T")


class Entry:
    """One document of an archive."""

    def __init__(
        self, tar: tarfile.TarFile, card: Card, members: Mapping[str, tarfile.TarInfo], end: int
    ) -> None:
        self.card = card
        self.end = end
        self._tar, self._members = tar, members

    @property
    def document_id(self) -> str:
        """The id of the document."""
        return self.card.transcript.document_id

    def bundle(self, schema: CollectionSchema) -> DocumentBundle:
        """Read the document's chunks and vectors.

        Raises ArchiveError if any part of the document, including its blobs, is damaged.
        """
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
        record, chunks = for_audience(transcript.audience, record, chunks)
        return DocumentBundle(transcript, record, tuple(chunks))

    def blob_names(self) -> list[str]:
        """The names of the document's files for the blob store."""
        return [n.removeprefix("blobs/") for n in self._members if n.startswith("blobs/")]

    def blob(self, name: str) -> Checked:
        """Open a blob as a stream. The stream raises ArchiveError at its end if it is damaged."""
        return self._open(f"blobs/{name}")

    def damaged(self, what: str) -> ArchiveError:
        """Return an error that names this document and the fault."""
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
    """An open archive file.

    The constructor raises ArchiveError if the file is not an archive of a known format.
    """

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
            raise ArchiveError(
                f"{path.name} is no archive of Callslip: {_short_text(error)}"
            ) from None
        self.whole: End | None = None
        """The content of end.json; None until `entries` has read it."""
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
        """Close the file."""
        self._tar.close()
        self._file.close()

    def entries(self) -> Iterator[Entry]:
        """Iterate over the documents in file order, up to the end or the point of truncation.

        Afterwards `whole` is None if the file is truncated. The iterator reads only document.json
        of each document. Raises ArchiveError if a member is invalid or in a wrong position.
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
        """Iterate over all entries and return the content of end.json.

        Raises ArchiveError if the file is truncated or an entry is invalid.
        """
        for _ in self.entries():
            pass
        if self.whole is None:
            raise ArchiveError(f"{self.path.name} is cut off: its end is missing")
        return self.whole

    def _next(self) -> tarfile.TarInfo | None:
        """The next member; None at the end of the file or if the file is truncated."""
        try:
            check_headers(self._file, self._tar.offset)
            member = self._tar.next()
        except (tarfile.TarError, EOFError):
            return None
        except (ValueError, OverflowError, OSError) as error:
            raise self._damaged(_short_text(error)) from None
        forget_members(self._tar)
        if member is None or member.offset_data + member.size > self._size:
            return None
        if not member.isreg() or member.issparse() or member.size < 0:
            raise self._damaged(f"{member.name[:80]!r} is not a plain file")
        return member

    def _head(self, member: tarfile.TarInfo) -> Head:
        head = self._json(member, HEAD, "collection.json")
        if head.magic != MAGIC:
            raise ArchiveError(f"{self.path.name} is no archive of Callslip")
        if head.format not in FORMATS:
            raise ArchiveError(
                f"{self.path.name} has format {head.format}, this Callslip reads"
                f" {', '.join(map(str, FORMATS))}",
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
            location = ".".join(str(part)[:40] for part in first["loc"])
            raise self._damaged(
                f"{name} is not as it must be: {location} {first['type']}"
            ) from None
        except (ValueError, RecursionError, MemoryError, OverflowError) as error:
            raise self._damaged(f"{name}: {type(error).__name__}") from None

    def _check_size(self, member: tarfile.TarInfo) -> None:
        if member.size > largest(member.name):
            raise self._damaged(f"{member.name} has more than {largest(member.name):,} bytes")

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


def _short_text(error: Exception) -> str:
    return str(error)[:80] or type(error).__name__
