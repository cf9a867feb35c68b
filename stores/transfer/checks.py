"""Checks that a whole archive can be imported, before the import writes anything."""

import sqlite3
from collections.abc import Collection, Iterable
from contextlib import closing

from callslip.errors import ArchiveError, Conflict
from callslip.stores.backend import Backend
from callslip.stores.ledger import Transcript
from callslip.stores.records import CollectionSchema
from callslip.stores.transfer.archive_format import End
from callslip.stores.transfer.archive_reader import Archive, Entry


def check_archive(
    backend: Backend,
    archive: Archive,
    end: End,
    schema: CollectionSchema,
    purged: Collection[str],
) -> None:
    """Read the whole archive once. Raises ArchiveError or Conflict if it cannot be imported.

    The documents that were `purged` here are not imported, so nothing here can conflict with them.
    """
    if fault := _end_fault(end, schema):
        raise ArchiveError(f"{archive.path.name} is damaged: {fault}")
    tenants = {t: {"documents": 0, "chunks": 0} for t in end.tenants}
    with closing(_Met()) as met:
        for entry in archive.entries():
            if not end.counts(entry.card):
                continue
            bundle = entry.bundle(schema)
            transcript = bundle.transcript
            if transcript.tenant not in tenants or bool(transcript.tenant) != schema.tenants:
                raise entry.damaged("its tenant is none of the archive's")
            tenants[transcript.tenant]["documents"] += 1
            tenants[transcript.tenant]["chunks"] += len(bundle.chunks)
            met.add(entry)
            if transcript.document_id not in purged:
                _check_free(backend, schema.name, transcript)
    if tenants != end.tenants:
        raise ArchiveError(f"{archive.path.name} is damaged: its end counts other documents")


def _end_fault(end: End, schema: CollectionSchema) -> str | None:
    """Return why end.json does not fit the collection; None if it fits."""
    if any(end.tenants) and not schema.tenants:
        return "its end names tenants, and the collection has none"
    tenants = {probe.probe.tenant for probe in end.probes}
    if not tenants <= end.tenants.keys() or any(bool(t) != schema.tenants for t in tenants):
        return "a probe is of a tenant that is none of the archive's"
    if any("\0" in name for name in (*end.tenants, *end.property_names)):
        return "its end has a name with a NUL character"
    return None


def _check_free(backend: Backend, collection: str, transcript: Transcript) -> None:
    """Raise Conflict if the document's id or its name already belongs to another document."""
    if backend.ledger.transcripts.standing(collection, transcript) != "new":
        return
    if backend.ledger.documents.id_of(collection, transcript.name, tenant=transcript.tenant):
        raise Conflict(
            f"the name of document {transcript.document_id} is here already, as another document's",
            hint="Import into a collection that has no documents of its own.",
        )


class _Met:
    """The set of document ids, names and chunk ids read from an archive so far.

    A temporary SQLite database stores them, so that memory does not grow with the archive.
    """

    def __init__(self) -> None:
        self._database = sqlite3.connect("")
        self._database.execute(
            "CREATE TABLE met (kind TEXT, tenant TEXT, value TEXT,"
            " PRIMARY KEY (kind, tenant, value)) WITHOUT ROWID"
        )

    def add(self, entry: Entry) -> None:
        """Add a document. Raises ArchiveError if another has the same id, name or chunk."""
        transcript = entry.card.transcript
        self._once("document", "", [entry.document_id], entry.damaged("it is there twice"))
        error = entry.damaged("another document has its name")
        self._once("name", transcript.tenant, [transcript.name], error)
        error = entry.damaged("another document has one of its chunks")
        self._once("chunk", "", transcript.chunks, error)

    def close(self) -> None:
        """Close and delete the temporary database."""
        self._database.close()

    def _once(self, kind: str, tenant: str, values: Iterable[str], error: ArchiveError) -> None:
        rows = ((kind, tenant, value) for value in values)
        try:
            self._database.executemany("INSERT INTO met VALUES (?, ?, ?)", rows)
        except sqlite3.IntegrityError:
            raise error from None
