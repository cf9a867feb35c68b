"""Whether all of an archive can arrive: asked before the first of it is written."""

import sqlite3
from collections.abc import Iterable
from contextlib import closing

from callslip.errors import ArchiveError, Conflict
from stores.ledger import Transcript
from stores.records import CollectionSchema
from stores.transfer.archive import Archive, End, Entry
from stores.transfer.house import House


def look_over(house: House, archive: Archive, end: End, schema: CollectionSchema) -> None:
    """Read everything once; ArchiveError or Conflict where it cannot all arrive."""
    if fault := _end_fault(end, schema):
        raise ArchiveError(f"{archive.path.name} is damaged: {fault}")
    tenants = {t: {"documents": 0, "chunks": 0} for t in end.tenants}
    with closing(_Met()) as met:
        for entry in archive.entries():
            if not end.counts(entry.card):
                continue
            parcel = entry.parcel(schema)
            transcript = parcel.transcript
            if transcript.tenant not in tenants or bool(transcript.tenant) != schema.tenants:
                raise entry.damaged("its tenant is none of the archive's")
            tenants[transcript.tenant]["documents"] += 1
            tenants[transcript.tenant]["chunks"] += len(parcel.chunks)
            met.add(entry)
            _check_free(house, schema.name, transcript)
    if tenants != end.tenants:
        raise ArchiveError(f"{archive.path.name} is damaged: its end counts other documents")


def _end_fault(end: End, schema: CollectionSchema) -> str | None:
    """Say what of the end does not go with the collection."""
    if any(end.tenants) and not schema.tenants:
        return "its end names tenants, and the collection has none"
    asked = {asked.probe.tenant for asked in end.probes}
    if not asked <= end.tenants.keys() or any(bool(t) != schema.tenants for t in asked):
        return "a probe is of a tenant that is none of the archive's"
    if any("\0" in name for name in (*end.tenants, *end.property_names)):
        return "its end has a name with a NUL character"
    return None


def _check_free(house: House, collection: str, transcript: Transcript) -> None:
    """Conflict where the document, or another of its name, is here as something else."""
    if house.ledger.transcripts.standing(collection, transcript) != "new":
        return
    if house.ledger.documents.id_of(collection, transcript.name, tenant=transcript.tenant):
        raise Conflict(
            f"the name of document {transcript.document_id} is here already, as another document's",
            hint="Import into a collection that has no documents of its own.",
        )


class _Met:
    """The documents, names and chunks that an archive was seen to have.

    They lie in a temporary file, so that memory does not grow with the archive.
    """

    def __init__(self) -> None:
        self._database = sqlite3.connect("")
        self._database.execute(
            "CREATE TABLE met (kind TEXT, tenant TEXT, value TEXT,"
            " PRIMARY KEY (kind, tenant, value)) WITHOUT ROWID"
        )

    def add(self, entry: Entry) -> None:
        """Note a document; ArchiveError where it has something that another has."""
        transcript = entry.card.transcript
        self._once("document", "", [entry.document_id], entry.damaged("it is there twice"))
        error = entry.damaged("another document has its name")
        self._once("name", transcript.tenant, [transcript.name], error)
        error = entry.damaged("another document has one of its chunks")
        self._once("chunk", "", transcript.chunks, error)

    def close(self) -> None:
        """Forget all."""
        self._database.close()

    def _once(self, kind: str, tenant: str, values: Iterable[str], error: ArchiveError) -> None:
        rows = ((kind, tenant, value) for value in values)
        try:
            self._database.executemany("INSERT INTO met VALUES (?, ?, ?)", rows)
        except sqlite3.IntegrityError:
            raise error from None
