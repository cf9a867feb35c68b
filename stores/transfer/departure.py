"""Exporting a collection into an archive, and going on where a killed export stopped.

Until it is whole the archive lies beside FILE as FILE.partial. Documents are written in order of
their ids, each as it stands when its turn comes; at the end those that came or changed meanwhile
are written anew.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import IO

from callslip.errors import ArchiveError, Conflict, MoveError
from stores.contract import Store
from stores.ledger import CollectionRecord, Transcript
from stores.transfer.archive import FORMAT, MAGIC, Archive, Asked, End, Head, Writer, blob_names
from stores.transfer.house import House, Progress, Report
from stores.transfer.parcel import Parcel, collect
from stores.transfer.probes import ask, draw


def export_collection(house: House, name: str, path: Path, progress: Progress) -> Report:
    """Write a collection into a file. Documents without a live version are left out, and counted.

    Conflict where the file is there already, MoveError where something of a document is missing,
    AttachedReadOnly for a table of somebody else. The same call goes on where one that was killed
    stopped.
    """
    begun = time.monotonic()
    collection = house.ledger.collections.writable(name)
    store = house.store_of(collection.store)
    store.ping()
    if path.exists():
        raise Conflict(
            f"{path} is there already", hint="Name another file, or remove this one first."
        )
    partial = path.with_name(f"{path.name}.partial")
    with _opened(partial, _head(collection)) as file:
        kept, last, skipped = _sound_part(partial, collection)
        file.truncate(kept)
        file.seek(kept)
        export = _Export(house, store, collection, Writer(file), progress)
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
        house: House,
        store: Store,
        collection: CollectionRecord,
        writer: Writer,
        progress: Progress,
    ) -> None:
        self._house, self._store, self._collection = house, store, collection
        self._name, self._writer, self._progress = collection.name, writer, progress
        self._total = sum(n for n, _ in house.ledger.transcripts.counts(self._name).values())

    def all_after(self, last: str) -> None:
        """Write every document whose id comes after `last`."""
        for document_id, _ in _live(self._house, self._name, after=last):
            self._write(document_id)

    def finish(self, path: Path) -> End:
        """Write what is not in the archive as it stands in the ledger, and then the end."""
        ledger = self._house.ledger
        names = ledger.tenants.all(self._name) if self._collection.schema.tenants else [""]
        tenants = {tenant: {"documents": 0, "chunks": 0} for tenant in names}
        missing, gone = _compare(path, _live(self._house, self._name), tenants)
        changed: dict[str, int] = {}
        for document_id in missing:
            if (parcel := self._write(document_id)) is None:
                gone.append(document_id)
            else:
                changed[document_id] = parcel.transcript.live_version
                _count(tenants, parcel.transcript)
        probes = [
            probe
            for probe in draw(ledger, self._store, self._name)
            if probe.tenant in tenants  # not one that was made meanwhile
        ]
        end = End(
            tenants=tenants,
            changed=changed,
            gone=gone,
            left_out=ledger.transcripts.left_out(self._name),
            property_names=sorted(ledger.collections.property_names(self._name)),
            keyword_score=self._store.keyword_score,
            probes=[Asked(p, dict(ask(ledger, self._store, self._name, p))) for p in probes],
        )
        self._writer.end(end)
        return end

    def _write(self, document_id: str) -> Parcel | None:
        parcel = collect(self._house.ledger, self._store, self._name, document_id)
        if parcel is None:
            return None
        with ExitStack() as stack:
            blobs = {}
            for name in blob_names(parcel.transcript):
                try:
                    reading = self._house.blobs.reading(document_id, name)
                    blobs[name] = stack.enter_context(reading)
                except FileNotFoundError:
                    if self._house.ledger.transcripts.read(document_id) is None:
                        return None  # deleted meanwhile
                    raise MoveError(
                        f"the blob store lacks {name} of document {document_id}",
                        hint="Submit the document again, or delete it; then export again.",
                    ) from None
            self._writer.document(parcel, blobs)
        self._progress(self._total, len(parcel.chunks))
        return parcel


def _compare(
    path: Path, live: Iterator[tuple[str, int]], tenants: dict[str, dict[str, int]]
) -> tuple[list[str], list[str]]:
    """Count what the archive holds as it stands in the ledger; ids it lacks, and has in vain.

    Both are in order of their ids.
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


def _live(house: House, name: str, *, after: str = "") -> Iterator[tuple[str, int]]:
    """Ids and versions of live documents in order of their ids."""
    while page := house.ledger.transcripts.ids(name, after=after):
        yield from page
        after = page[-1][0]


def _head(collection: CollectionRecord) -> Head:
    return Head(
        magic=MAGIC,
        format=FORMAT,
        name=collection.name,
        embedder=collection.embedder,
        analyzer=collection.analyzer,
        store=collection.store,
        default=collection.schema.default,
        named=dict(collection.schema.named),
        tenants=collection.schema.tenants,
        created_at=collection.created_at,
        options=collection.options,
    )


@contextmanager
def _opened(partial: Path, head: Head) -> Iterator[IO[bytes]]:
    """The unfinished archive, made where it is missing and held against a second export."""
    try:
        if not partial.exists():
            draft = partial.with_name(f"{partial.name}.new")
            draft.touch(mode=0o600)  # it holds what the documents say
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


def _sound_part(partial: Path, collection: CollectionRecord) -> tuple[int, str, int]:
    """Where the documents end that an export wrote before it was killed; the last, and how many.

    Those that it wrote anew, which stand after all others, are left to be written anew again.
    """
    advice = f"Remove {partial} to begin anew."
    try:
        archive = Archive(partial)
    except ArchiveError as error:
        raise MoveError(f"{partial} is no unfinished export", hint=advice) from error
    with closing(archive):
        if archive.head != _head(collection):
            raise MoveError(f"{partial} is an unfinished export of another state", hint=advice)
        kept, last, count = archive.start, "", 0
        try:
            for entry in archive.entries():
                if entry.document_id <= last:
                    break
                entry.parcel(collection.schema)
                kept, last, count = entry.end, entry.document_id, count + 1
        except ArchiveError:
            pass  # a power cut left less than was written
    return kept, last, count
