"""Exports a collection into an archive, and continues an export that was killed.

Until the archive is complete, it is in FILE.partial next to FILE. Documents are written in order of
their ids, each in its state at that time. At the end, documents that were added or changed
meanwhile are written again.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import IO

from callslip.errors import ArchiveError, Conflict, MoveError
from callslip.stores.backend import Backend
from callslip.stores.contract import Store
from callslip.stores.ledger import CollectionRecord, Ledger, Transcript
from callslip.stores.sides import kind_of
from callslip.stores.transfer.archive_format import (
    FORMAT,
    FORMAT_WITH_EMBEDDERS,
    FORMAT_WITH_READERS,
    MAGIC,
    End,
    Head,
    ProbeAnswers,
    blob_names,
)
from callslip.stores.transfer.archive_reader import Archive
from callslip.stores.transfer.archive_writer import Writer
from callslip.stores.transfer.bundle import DocumentBundle, collect
from callslip.stores.transfer.probes import ask, draw
from callslip.stores.transfer.reports import Progress, Report


def export_collection(backend: Backend, name: str, path: Path, progress: Progress) -> Report:
    """Write a collection into a file. Omits documents without a live version, and counts them.

    The same call continues an export that was killed. Raises Conflict if the file exists, MoveError
    if data of a document is missing, AttachedReadOnly for an attached table.
    """
    begun = time.monotonic()
    collection = backend.ledger.collections.writable(name)
    store = backend.store_of(collection.store)
    store.ping()
    if path.exists():
        raise Conflict(
            f"{path} is there already", hint="Name another file, or remove this one first."
        )
    partial = path.with_name(f"{path.name}.partial")
    head = _head(backend.ledger, collection)
    with _opened(partial, head) as file:
        size, last, skipped = _sound_part(partial, collection, head)
        file.truncate(size)
        file.seek(size)
        export = _Export(backend, store, collection, Writer(file), progress)
        export.all_after(last)
        file.flush()
        end = export.finish(partial)
        file.flush()
        os.fsync(file.fileno())
        partial.rename(path)
    return Report(
        collection=name,
        documents=sum(counts["documents"] for counts in end.tenants.values()),
        chunks=sum(counts["chunks"] for counts in end.tenants.values()),
        seconds=time.monotonic() - begun,
        skipped=skipped,
        left_out=end.left_out,
        tenants=end.tenants,
    )


class _Export:
    def __init__(
        self,
        backend: Backend,
        store: Store,
        collection: CollectionRecord,
        writer: Writer,
        progress: Progress,
    ) -> None:
        self._backend, self._store, self._collection = backend, store, collection
        self._name, self._writer, self._progress = collection.name, writer, progress
        self._total = sum(n for n, _ in backend.ledger.transcripts.counts(self._name).values())

    def all_after(self, last: str) -> None:
        """Write every document whose id comes after `last`."""
        for document_id, _ in _live(self._backend, self._name, after=last):
            self._write(document_id)

    def finish(self, path: Path) -> End:
        """Write documents whose archived version differs from the ledger, then end.json."""
        ledger = self._backend.ledger
        names = ledger.tenants.all(self._name) if self._collection.schema.tenants else [""]
        tenants = {tenant: {"documents": 0, "chunks": 0} for tenant in names}
        missing, gone = _compare(path, _live(self._backend, self._name), tenants)
        changed: dict[str, int] = {}
        for document_id in missing:
            if (bundle := self._write(document_id)) is None:
                gone.append(document_id)
            else:
                changed[document_id] = bundle.transcript.live_version
                _count(tenants, bundle.transcript)
        probes = [
            probe
            for probe in draw(ledger, self._store, self._name)
            if probe.tenant in tenants  # not a tenant that was created meanwhile
        ]
        end = End(
            tenants=tenants,
            changed=changed,
            gone=gone,
            left_out=ledger.transcripts.left_out(self._name),
            property_names=sorted(ledger.collections.property_names(self._name)),
            keyword_score=self._store.keyword_score,
            probes=[ProbeAnswers(p, dict(ask(ledger, self._store, self._name, p))) for p in probes],
        )
        self._writer.end(end)
        return end

    def _write(self, document_id: str) -> DocumentBundle | None:
        bundle = collect(self._backend.ledger, self._store, self._name, document_id)
        if bundle is None:
            return None
        with ExitStack() as stack:
            blobs = {}
            for name in blob_names(bundle.transcript):
                try:
                    reading = self._backend.blobs.reading(document_id, name)
                    blobs[name] = stack.enter_context(reading)
                except FileNotFoundError:
                    if self._backend.ledger.transcripts.read(document_id) is None:
                        return None  # deleted meanwhile
                    raise MoveError(
                        f"the blob store lacks {name} of document {document_id}",
                        hint="Submit the document again, or delete it; then export again.",
                    ) from None
            self._writer.document(bundle, blobs)
        self._progress(self._total, len(bundle.chunks))
        return bundle


def _compare(
    path: Path, live: Iterator[tuple[str, int]], tenants: dict[str, dict[str, int]]
) -> tuple[list[str], list[str]]:
    """Compare the archive with the ledger, both in order of document ids.

    Counts the archived documents whose version is live. Returns the ids of live documents that the
    archive lacks or has in another version, and the ids of archived documents that are not live.
    """
    missing, gone = [], []
    here = next(live, None)
    with closing(Archive(path)) as archive:
        for entry in archive.entries():
            while here is not None and here[0] < entry.document_id:
                missing.append(here[0])
                here = next(live, None)
            if here is None or here[0] != entry.document_id:
                gone.append(entry.document_id)
                continue
            if here[1] == entry.card.transcript.live_version:
                _count(tenants, entry.card.transcript)
            else:
                missing.append(entry.document_id)
            here = next(live, None)
    if here is not None:
        missing += [here[0], *(document_id for document_id, _ in live)]
    return missing, gone


def _count(tenants: dict[str, dict[str, int]], transcript: Transcript) -> None:
    counts = tenants.setdefault(transcript.tenant, {"documents": 0, "chunks": 0})
    counts["documents"] += 1
    counts["chunks"] += len(transcript.chunks)


def _live(backend: Backend, name: str, *, after: str = "") -> Iterator[tuple[str, int]]:
    """Iterate over the ids and versions of live documents, in order of their ids."""
    while page := backend.ledger.transcripts.ids(name, after=after):
        yield from page
        after = page[-1][0]


def _head(ledger: Ledger, collection: CollectionRecord) -> Head:
    archive_format = FORMAT
    if collection.schema.embedders:
        archive_format = FORMAT_WITH_EMBEDDERS
    elif ledger.transcripts.any_readers(collection.name):
        archive_format = FORMAT_WITH_READERS
    return Head(
        magic=MAGIC,
        format=archive_format,
        name=collection.name,
        embedder=collection.embedder,
        analyzer=collection.analyzer,
        store=kind_of(collection.store),
        default=collection.schema.default,
        named=dict(collection.schema.named),
        tenants=collection.schema.tenants,
        created_at=collection.created_at,
        options=collection.options,
    )


@contextmanager
def _opened(partial: Path, head: Head) -> Iterator[IO[bytes]]:
    """Open the unfinished archive, creating it if it is missing, and lock it for this export."""
    try:
        if not partial.exists():
            draft = partial.with_name(f"{partial.name}.new")
            draft.touch(mode=0o600)  # it contains the texts of documents
            with draft.open("wb") as file:
                Writer(file).head(head)
            draft.rename(partial)
        with partial.open("r+b") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Conflict(f"{partial} is being written by another export") from None
            yield file
    except OSError as error:
        if error.filename not in (None, str(partial), f"{partial}.new"):
            raise
        raise MoveError(
            f"{partial} cannot be written: {error.strerror}",
            hint="Name a file in a folder that is there, may be written to and has room.",
        ) from error


def _sound_part(partial: Path, collection: CollectionRecord, head: Head) -> tuple[int, str, int]:
    """Find the valid part of the unfinished archive of a killed export.

    Returns the offset in bytes where its last valid document ends, the id of that document, and the
    number of documents. Documents that the export wrote a second time follow all others; they are
    not part of the result, and the export writes them again.
    """
    advice = f"Remove {partial} to start again."
    try:
        archive = Archive(partial)
    except ArchiveError as error:
        raise MoveError(f"{partial} is no unfinished export", hint=advice) from error
    with closing(archive):
        if archive.head != head:
            raise MoveError(f"{partial} is an unfinished export of another state", hint=advice)
        size, last, count = archive.start, "", 0
        try:
            for entry in archive.entries():
                if entry.document_id <= last:
                    break
                entry.bundle(collection.schema)
                size, last, count = entry.end, entry.document_id, count + 1
        except ArchiveError:
            pass  # after a power cut, a part of the written data is missing
    return size, last, count
