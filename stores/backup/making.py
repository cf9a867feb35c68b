"""Makes a backup while the installation runs.

The ledger is read first, in one snapshot; then the conversations, the blobs of its documents, and
the chunks of documents that only a store has. The manifest is written last. So a backup that was
killed does not count, and the next backup uses the objects that it wrote.
"""

import base64
import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import islice
from typing import Any, Protocol

from callslip.errors import (
    BackupError,
    CallslipError,
    CollectionNotFound,
    DocumentNotFound,
    MoveError,
    StoreDown,
)
from callslip.stores.backend import Backend
from callslip.stores.backup import manifest as manifests
from callslip.stores.backup.destination import COPY_BYTES, Destination
from callslip.stores.backup.manifest import (
    BLOBS,
    CONVERSATIONS,
    COPIES,
    LEDGER,
    Manifest,
    Part,
    Probes,
)
from callslip.stores.backup.parts import NameSet, Writer, rows
from callslip.stores.backup.thinning import thin
from callslip.stores.blobs import PURGES as PURGES
from callslip.stores.ledger import STEPS
from callslip.stores.ledger.tables import REVISION, TABLES, columns
from callslip.stores.transfer.archive_format import ProbeAnswers
from callslip.stores.transfer.bundle import BATCH, collect
from callslip.stores.transfer.contents import encode
from callslip.stores.transfer.probes import ask, draw

BLOB_COLUMNS = ("document_id", "name", "size", "mark", "sha256")
COPY_COLUMNS = (
    *("document_id", "title", "filename", "properties"),
    *("vector_names", "lines", "vectors"),
)
CONVERSATION_COLUMNS = ("key", "state")

THREADS = 8
"""Files that are copied at a time, because each waits for a disk or a bucket."""

DOCUMENTS_AT_A_TIME = 64

Progress = Callable[[str, int], None]
"""Called with a phase, and the documents or rows done in it since the last call."""


class States(Protocol):
    """The turns of conversations by key."""

    def state(self, key: str) -> bytes | None:
        """A conversation's state; None if it has none."""

    def put_state(self, key: str, state: bytes) -> None:
        """Store the state of a conversation."""


@dataclass
class Made:
    """The report of a backup. `written` and `bytes` count new objects and their content."""

    name: str = ""
    documents: int = 0
    files: int = 0
    conversations: int = 0
    written: int = 0
    bytes: int = 0
    seconds: float = 0.0
    gone: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    removed_backups: int = 0
    removed_objects: int = 0


@dataclass(frozen=True)
class _File:
    document_id: str
    name: str
    size: int
    mark: str
    sha256: str

    def row(self) -> list[Any]:
        return [self.document_id, self.name, self.size, self.mark, self.sha256]


def make_backup(
    backend: Backend,
    states: States,
    destination: Destination,
    settings: Mapping[str, str],
    *,
    keep: int,
    progress: Progress = lambda _phase, _done: None,
) -> Made:
    """Make a backup, then remove those that `keep` does not retain.

    `settings` are recorded as they are, so they must have no secrets. Raises StoreDown if a part
    does not answer; a store is needed only for documents whose artifacts are not in the blob store.
    """
    began = time.time()
    with NameSet(destination.objects()) as present:
        making = _Making(backend, states, destination, present, progress)
        parts = making.ledger()
        parts[CONVERSATIONS] = making.conversations(parts[LEDGER + "conversations"])
        parts[BLOBS], parts[COPIES] = making.documents(parts[LEDGER + "documents"])
        probes = making.probes()
        making.check_forms(parts[LEDGER + "collections"])
    made = making.made
    made.name = manifests.write(
        destination,
        Manifest(
            began_at=began,
            ended_at=time.time(),
            callslip=version("callslip"),
            revision=REVISION,
            settings=dict(settings),
            last_event=making.last_event,
            parts=parts,
            probes=probes,
            gone=made.gone,
            missing=made.missing,
        ),
    )
    copy_receipts(backend, destination)
    thinned = thin(destination, keep)
    made.removed_backups, made.removed_objects = thinned.backups, thinned.objects
    made.seconds = time.time() - began
    return made


def copy_receipts(backend: Backend, destination: Destination) -> None:
    """Copy each receipt that the destination lacks, or has as it was before the purge ended."""
    there = set(destination.names(PURGES))
    for name in sorted(backend.blobs.names(PURGES)):
        if name not in there or not has_ended(destination.load(PURGES, name)):
            destination.write(PURGES, name, json.loads(backend.blobs.read(PURGES, name)))


def has_ended(receipt: Mapping[str, Any]) -> bool:
    """Whether the purge of a receipt has ended; before that the receipt has no `after`."""
    return "after" in receipt


class _Making:
    def __init__(
        self,
        backend: Backend,
        states: States,
        destination: Destination,
        present: NameSet,
        progress: Progress,
    ) -> None:
        self._backend, self._states, self._destination = backend, states, destination
        self._present, self._progress = present, progress
        self.made = Made()
        self.last_event = 0

    def ledger(self) -> dict[str, Part]:
        """Write all tables as they are at one moment."""
        parts = {}
        with self._backend.ledger.tables.snapshot() as snapshot:
            self.last_event = snapshot.last_event()
            for name in TABLES:
                writer = self._writer(columns(name))
                for row in snapshot.rows(name):
                    writer.add(row)
                parts[LEDGER + name] = writer.part()
                self._progress("ledger", parts[LEDGER + name].rows)
        return parts

    def check_forms(self, table: Part) -> None:
        """Raise BackupError if a collection was moved or rebuilt since the snapshot.

        Its artifacts and chunks, which were read since, have another form than the ledger's rows.
        """
        of_form = ("store", "embedder", "analyzer")
        present = {each.name: each for each, _ in self._backend.ledger.collections.all()}
        for row in self._rows(table):
            now = present.get(row["name"])
            if row["deleted_at"] is not None or now is None:
                continue
            if any(row[field] != getattr(now, field) for field in of_form):
                raise BackupError(
                    f"collection {row['name']!r} was moved or rebuilt during the backup",
                    hint="Make the backup again.",
                )

    def conversations(self, table: Part) -> Part:
        """Write the state of each conversation in the ledger's rows."""
        writer = self._writer(CONVERSATION_COLUMNS)
        for row in self._rows(table):
            state = self._states.state(row["key"])
            if state is not None:
                writer.add([row["key"], base64.b64encode(state).decode()])
                self.made.conversations += 1
        return writer.part()

    def documents(self, table: Part) -> tuple[Part, Part]:
        """Write the files of each document, and the chunks of those that only a store has."""
        files, copies = self._writer(BLOB_COLUMNS), self._writer(COPY_COLUMNS)
        documents = (row for row in self._rows(table) if row["deleted_at"] is None)
        with closing(_Known(self._previous())) as known, ThreadPoolExecutor(THREADS) as pool:
            while some := list(islice(documents, DOCUMENTS_AT_A_TIME)):
                before = [known.of(row["document_id"]) for row in some]
                ids = [row["document_id"] for row in some]
                new: list[_File] = []
                for row, its in zip(some, pool.map(self._files, ids, before), strict=True):
                    if its is None:
                        self._lost(row["document_id"])
                        continue
                    for file in its:
                        files.add(file.row())
                        if self._present.add(self._destination.name(file.sha256)):
                            new.append(file)
                    self.made.documents += 1
                    self.made.files += len(its)
                    if row["live_version"] is not None:
                        self._copy_chunks(row, {file.name for file in its}, copies)
                for file, copied in zip(new, pool.map(self._copy, new), strict=True):
                    if copied:
                        self.made.written += 1
                        self.made.bytes += file.size
                    else:
                        self._lost(file.document_id)
                self._progress("documents", len(some))
        return files.part(), copies.part()

    def probes(self) -> dict[str, Probes]:
        """Draw probe queries of each collection, and record their first hits."""
        ledger, probes = self._backend.ledger, {}
        for record, _ in ledger.collections.all():
            if record.attached:
                continue
            name = record.name
            try:
                store = self._backend.store_of(record.store)
                answers = [
                    ProbeAnswers(probe, dict(ask(ledger, store, name, probe)))
                    for probe in draw(ledger, store, name)
                ]
            except CollectionNotFound:
                continue  # deleted meanwhile
            except CallslipError as error:
                self.made.notes.append(f"{name} has no probe queries: {error.detail}")
                continue
            probes[name] = Probes(store.keyword_score, answers)
        return probes

    def _files(self, document_id: str, before: dict[str, _File]) -> list[_File] | None:
        """The document's files with their checksums; None if they are gone."""
        files = []
        for name, size, mark in self._backend.blobs.files(document_id):
            known = before.get(name)
            if known and (known.size, known.mark) == (size, mark):
                files.append(known)
                continue
            try:
                files.append(_File(document_id, name, *self._sum(document_id, name, mark)))
            except FileNotFoundError:
                return None
        return files or None

    def _sum(self, document_id: str, name: str, mark: str) -> tuple[int, str, str]:
        """The size of a file, its mark and its SHA-256."""
        digest, size = hashlib.sha256(), 0
        with self._backend.blobs.reading(document_id, name) as (_, file):
            while block := file.read(COPY_BYTES):
                digest.update(block)
                size += len(block)
        return size, mark, digest.hexdigest()

    def _copy(self, file: _File) -> bool:
        """Copy a file; return False if it is gone."""
        try:
            with self._backend.blobs.reading(file.document_id, file.name) as (_, stream):
                self._destination.put(file.sha256, iter(lambda: stream.read(COPY_BYTES), b""))
        except FileNotFoundError:
            return False
        return True

    def _lost(self, document_id: str) -> None:
        """Record a document whose files are not there: deleted meanwhile, or missing."""
        try:
            deleted = self._backend.ledger.documents.get(document_id).deleted_at is not None
        except DocumentNotFound:
            deleted = True
        into = self.made.gone if deleted else self.made.missing
        if document_id not in into:
            into.append(document_id)

    def _copy_chunks(self, row: Mapping[str, Any], names: set[str], copies: Writer) -> None:
        """Write a document's chunks from its store if the steps' artifacts do not yield them."""
        ledger, document_id = self._backend.ledger, row["document_id"]
        artifacts = ledger.inventory.artifacts(document_id, row["live_version"])
        if all(artifacts.get(step) in names for step in STEPS[:-1]):
            return
        try:
            store = self._backend.store_of(ledger.collections.get(row["collection"]).store)
            bundle = collect(ledger, store, row["collection"], document_id)
        except StoreDown as error:
            raise StoreDown(
                f"document {document_id} has chunks that only its store has: {error.detail}",
                hint="Start Callslip, then make the backup.",
            ) from error
        except (CollectionNotFound, MoveError):
            bundle = None
        if bundle is None:
            self._lost(document_id)
            return
        record = bundle.record
        for start in range(0, max(len(bundle.chunks), 1), BATCH):
            content = encode(bundle.chunks[start : start + BATCH])
            copies.add(
                [
                    *(document_id, record.title, record.filename, dict(record.properties)),
                    list(content.vector_names),
                    content.lines.decode(),
                    base64.b64encode(content.vectors).decode(),
                ]
            )

    def _previous(self) -> Iterator[_File]:
        """The files of the newest backup, by document and name."""
        names = self._destination.names(manifests.FOLDER)
        if names:
            part = manifests.read(self._destination, names[-1]).part(BLOBS)
            yield from (_File(*row) for row in rows(self._destination, part))

    def _rows(self, part: Part) -> Iterator[dict[str, Any]]:
        for row in rows(self._destination, part):
            yield dict(zip(part.columns, row, strict=True))

    def _writer(self, names: tuple[str, ...] | list[str]) -> Writer:
        return Writer(self._destination, self._present, names)


class _Known:
    """The files of the previous backup, read along with the documents of this one."""

    def __init__(self, files: Iterator[_File]) -> None:
        self._files = files
        self._next = next(files, None)

    def of(self, document_id: str) -> dict[str, _File]:
        """The files of a document by name; call it with growing ids."""
        files: dict[str, _File] = {}
        while self._next is not None and self._next.document_id <= document_id:
            if self._next.document_id == document_id:
                files[self._next.name] = self._next
            self._next = next(self._files, None)
        return files

    def close(self) -> None:
        """Read no further."""
        self._next = None
