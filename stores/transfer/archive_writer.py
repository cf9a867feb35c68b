"""Writes archives: appends the members of an archive to a file, document by document."""

import io
import tarfile
import time
from collections.abc import Mapping
from typing import IO

from callslip.errors import MoveError
from callslip.stores.blobs import original_name
from callslip.stores.transfer.archive_format import (
    CARD,
    END,
    HEAD,
    MOST_NAMES,
    Card,
    End,
    File,
    Head,
    forget_members,
    largest,
)
from callslip.stores.transfer.bundle import DocumentBundle
from callslip.stores.transfer.contents import encode
from callslip.stores.transfer.streams import Hashing


class Writer:
    """Appends members to an archive, from the current position of the file."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._tar = tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT)  # noqa: SIM115

    def head(self, head: Head) -> None:
        """Write collection.json."""
        self._add("collection.json", HEAD.dump_json(head, indent=1))

    def document(self, bundle: DocumentBundle, blobs: Mapping[str, tuple[int, IO[bytes]]]) -> None:
        """Append a document and its blobs (size and content by name).

        Raises MoveError if the document is too large to be read again, or if the SHA-256 of its
        original differs from the one in the ledger.
        """
        transcript = bundle.transcript
        folder = f"documents/{transcript.document_id}"
        content = encode(bundle.chunks)
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
            title=bundle.record.title,
            filename=bundle.record.filename,
            properties=dict(bundle.record.properties),
            vector_names=list(content.vector_names),
            files=files,
        )
        self._add(f"{folder}/document.json", CARD.dump_json(card))

    def end(self, end: End) -> None:
        """Write end.json. Raises MoveError if a reader would refuse its size or its names."""
        if len(end.property_names) > MOST_NAMES:
            raise MoveError(
                f"the collection has {len(end.property_names):,} names of properties,"
                f" an archive keeps {MOST_NAMES:,}",
                hint="Submit its documents with fewer names to another collection.",
            )
        self._add("end.json", END.dump_json(end, indent=1))
        self._tar.close()

    def _add(self, name: str, content: bytes) -> File:
        if len(content) > largest(name):
            raise MoveError(
                f"{name} would have {len(content):,} bytes in an archive,"
                f" at most {largest(name):,} can be read again",
                hint="Submit what is in it as several documents; then export again.",
            )
        return self._stream(name, len(content), io.BytesIO(content))

    def _stream(self, name: str, size: int, stream: IO[bytes]) -> File:
        member = tarfile.TarInfo(name)
        member.size, member.mtime, member.mode = size, int(time.time()), 0o600
        hashing = Hashing(stream)
        self._tar.addfile(member, hashing)
        forget_members(self._tar)
        return File(size, hashing.digest.hexdigest())
