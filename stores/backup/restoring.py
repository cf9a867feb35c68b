"""Restores the files, the ledger and the conversations of a backup into an empty installation.

The blobs are written first, the ledger's rows next, in one transaction, the conversations last;
then the stores are filled (ingestion/maintenance/rebuild.py). A marker in the blob store says which
backup is being restored, so that the same call continues a restore that was killed.
"""

import base64
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy.exc import StatementError

from callslip.errors import BackupError, Conflict, DocumentNotFound
from callslip.stores.backend import Backend
from callslip.stores.backup import manifest as manifests
from callslip.stores.backup.destination import Destination
from callslip.stores.backup.making import PURGES, Progress, States, has_ended
from callslip.stores.backup.manifest import BLOBS, CONVERSATIONS, COPIES, Manifest, Part
from callslip.stores.backup.parts import rows
from callslip.stores.ledger import ATTACHED_KINDS
from callslip.stores.ledger.tables import REVISION, TABLES, Row
from callslip.stores.records import ChunkRecord, DocumentRecord
from callslip.stores.sides import kind_of
from callslip.stores.transfer.contents import Content, decode
from callslip.stores.transfer.counts import occupied

RESTORES, MARKER = "restores", "underway"
"""The folder and the name of the marker in the blob store."""


@dataclass
class Restored:
    """The report of a restore.

    `rows` has each table's number of rows. `lost` are documents whose files the backup lacks, or
    of whose chunks a half of the store lacks some. `probes` compares the probe queries, by
    collection and retriever.
    """

    name: str
    began_at: float
    documents: int = 0
    files: int = 0
    conversations: int = 0
    chunks: int = 0
    seconds: float = 0.0
    rows: dict[str, int] = field(default_factory=dict)
    probes: dict[str, Any] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    purged: int = 0
    settings: dict[str, tuple[str, str]] = field(default_factory=dict)


def restore_data(
    backend: Backend,
    states: States,
    destination: Destination,
    name: str,
    *,
    to: str,
    only: frozenset[str],
    progress: Progress = lambda _phase, _done: None,
) -> tuple[Manifest, Restored]:
    """Restore everything but the contents of the stores, which the caller writes afterwards.

    Collections of a store whose kind is not among `only` go to the store `to`. Raises Conflict if
    the installation is not empty, BackupError if the backup is damaged or of another revision of
    the ledger.
    """
    manifest = manifests.read(destination, name)
    if manifest.revision != REVISION:
        raise BackupError(
            f"backup {name} has revision {manifest.revision} of the ledger, this Callslip has"
            f" {REVISION}",
            hint=f"Restore with Callslip {manifest.callslip}, then upgrade.",
        )
    report = Restored(name, manifest.began_at)
    ledger, blobs = backend.ledger, backend.blobs

    def change(table: str, row: dict[str, Any]) -> dict[str, Any]:
        if table != "collections":
            return row
        kind = kind_of(row["store"])  # an empty installation has no second side
        return row | {"store": kind if kind in only.union(ATTACHED_KINDS) else to}

    if _marked(backend) != name:
        _check_empty(backend, destination, manifest)
        blobs.write(RESTORES, MARKER, name.encode())
    _restore_files(backend, destination, manifest.part(BLOBS), report, progress)
    if ledger.tables.is_empty():
        ledger.tables.load(_dump(destination, manifest, progress), manifest.last_event, change)
        ledger.leases.expire_all()
        ledger.source_runs.expire_all()
    for key, state in rows(destination, manifest.part(CONVERSATIONS)):
        states.put_state(key, base64.b64decode(state))
        report.conversations += 1
    for document_id in manifest.gone:
        with suppress(DocumentNotFound):  # purged since
            ledger.documents.delete(document_id)
    report.rows = ledger.tables.counts()
    report.faults += [
        f"table {table} has {report.rows[table]} rows, not {part.rows}"
        for table in TABLES
        if table != "events"  # a document that was deleted meanwhile has one more
        and report.rows[table] != (part := manifest.table(table)).rows
    ]
    return manifest, report


@contextmanager
def sound(name: str) -> Iterator[None]:
    """Raise BackupError for the errors of values that no backup has, wherever they are used."""
    try:
        yield
    except (
        *(ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError),
        *(NotImplementedError, StatementError, sqlite3.Error),
    ) as error:
        raise BackupError(
            f"backup {name} has a value that no backup has ({type(error).__name__})",
            hint="Restore another backup, into an empty data folder and an empty ledger.",
        ) from error


def finish(backend: Backend) -> None:
    """Remove the marker of a restore that is complete."""
    backend.blobs.delete(RESTORES)


def underway(backend: Backend) -> bool:
    """Whether a restore was begun and not finished."""
    return _marked(backend) is not None


def receipts(destination: Destination, since: float) -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and content of each receipt of a purge that ended since this time or has not ended."""
    for name in destination.names(PURGES):
        receipt = destination.load(PURGES, name)
        if not has_ended(receipt) or receipt["at"] >= since:
            yield name, receipt


@dataclass(frozen=True)
class Copied:
    """A document's record and chunks, from the store that had them when the backup was made."""

    record: DocumentRecord
    chunks: tuple[ChunkRecord, ...]


def copies(destination: Destination, manifest: Manifest) -> Iterator[Copied]:
    """The documents whose chunks are in the backup, because no artifacts yield them."""
    record: DocumentRecord | None = None
    chunks: list[ChunkRecord] = []
    for row in rows(destination, manifest.part(COPIES)):
        document_id, title, filename, properties, names, lines, vectors = row
        if record is not None and record.document_id != document_id:
            yield Copied(record, tuple(chunks))
            chunks = []
        record = DocumentRecord(document_id, title, filename, properties)
        content = Content(lines.encode(), base64.b64decode(vectors), tuple(names))
        chunks += decode(content, document_id)
    if record is not None:
        yield Copied(record, tuple(chunks))


def _marked(backend: Backend) -> str | None:
    try:
        return backend.blobs.read(RESTORES, MARKER).decode()
    except FileNotFoundError:
        return None


def _check_empty(backend: Backend, destination: Destination, manifest: Manifest) -> None:
    hint = "Restore into an empty data folder and an empty ledger."
    if not backend.ledger.tables.is_empty():
        raise Conflict("this installation is not empty: its ledger has rows", hint=hint)
    if backend.blobs.document_ids():
        raise Conflict("this installation is not empty: its blob store has files", hint=hint)
    part = manifest.table("collections")
    stores = backend.stores().values()
    for row in rows(destination, part):
        name = row[part.columns.index("name")]
        if row[part.columns.index("store")] in ATTACHED_KINDS:
            continue
        for store in stores:
            if occupied(store, name):
                raise Conflict(f"store {store.kind!r} has a collection {name!r} already", hint=hint)


def _restore_files(
    backend: Backend, destination: Destination, part: Part, report: Restored, progress: Progress
) -> None:
    last, there = "", dict[str, int]()
    for document_id, name, size, _mark, sha256 in rows(destination, part):
        if not isinstance(sha256, str) or not isinstance(size, int):
            raise BackupError(f"the backup names a file {name!r} without its checksum or size")
        if document_id != last:
            last = document_id
            there = {n: s for n, s, _ in backend.blobs.files(document_id)}
            report.documents += 1
            progress("files", 1)
        if there.get(name) != size:
            content = _Stream(destination.read(sha256, size))
            try:
                backend.blobs.write(document_id, name, content)
            except ValueError as error:
                raise BackupError(f"the backup names a file {name!r}, which cannot be") from error
        report.files += 1


def _dump(
    destination: Destination, manifest: Manifest, progress: Progress
) -> Iterator[tuple[str, list[str], Iterable[Row]]]:
    for table in TABLES:
        part = manifest.table(table)
        yield table, part.columns, rows(destination, part)
        progress("ledger", part.rows)


class _Stream:
    """Blocks as a stream."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks

    def read(self, _size: int, /) -> bytes:
        """The next block, of any size; empty at the end."""
        return next((block for block in self._blocks if block), b"")
