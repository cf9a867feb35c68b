"""The outbox of document events, written in the same transaction as the change.

So no event is lost, and no event reports a change that was rolled back. A transaction that changes
a document has locked it (`locks`), so the ids of its events increase in the order of the changes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, get_args

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    bindparam,
    delete,
    func,
    insert,
    literal,
    null,
    select,
)

from callslip.readers import Reader
from callslip.stores.ledger.base import outbox_tables, schema
from callslip.stores.ledger.base.database import Database
from callslip.stores.ledger.base.readable import of_readable, readable_counts
from callslip.stores.ledger.base.records import Step, VersionState
from callslip.vocabulary import EventKind as EventKind

_E, _D, _V = outbox_tables.events.c, schema.documents.c, schema.versions.c

KINDS: tuple[EventKind, ...] = get_args(EventKind)
"""All kinds. removed: a deleted document's data is gone; retrying: a step waits for a retry."""

TRIMMED_PER_TRANSACTION = 2000
"""Events that one transaction deletes; workers wait for SQLite's write lock in the meantime."""

_COLUMNS = ["document_id", "collection", "tenant", "version", "kind", "step", "at", "data"]
_OF_DOCUMENT = (_D.document_id, _D.collection, _D.tenant)
_PROVIDED = ("kind", "step", "at", "data")

# Statements of the hot path are built once: building one costs more than running it.
_ADD = insert(outbox_tables.events).from_select(
    _COLUMNS,
    select(
        *_OF_DOCUMENT,
        bindparam("of_version", type_=_E.version.type),
        *(bindparam(name, type_=_E[name].type) for name in _PROVIDED),
    ).where(_D.document_id == bindparam("of_document")),
)
_ADD_SUPERSEDED = insert(outbox_tables.events).from_select(
    _COLUMNS,
    select(
        *_OF_DOCUMENT, _V.version, literal("document.superseded"), null(), bindparam("at"), null()
    )
    .join(schema.versions, _V.document_id == _D.document_id)
    .where(_D.document_id == bindparam("of_document"), _V.state == bindparam("in_state")),
)

_VERSION = select(func.max(_E.event_id)).where(
    _E.collection == bindparam("corpus"),
    _E.tenant == bindparam("of"),
    outbox_tables.CHANGES_A_CORPUS,
)


@dataclass(frozen=True)
class Event:
    """One event of a document. `data` has a step's counts, attempt or failure."""

    event_id: int
    document_id: str
    collection: str
    tenant: str
    version: int | None
    kind: EventKind
    step: Step | None
    at: float
    data: dict[str, Any] | None


def add(
    connection: Connection,
    kind: EventKind,
    document_id: str,
    version: int | None,
    at: float,
    *,
    step: Step | None = None,
    data: dict[str, Any] | None = None,
) -> None:
    """Record an event of a document, within the transaction that changes it and has its lock."""
    add_all(connection, kind, [(document_id, version, data)], at, step=step)


def add_all(
    connection: Connection,
    kind: EventKind,
    documents: Iterable[tuple[str, int | None, Mapping[str, Any] | None]],
    at: float,
    *,
    step: Step | None = None,
) -> None:
    """Record an event of each document as `add` does: its id, its version, and the data."""
    common = {"kind": kind, "step": step, "at": at}
    rows = [
        {**common, "of_document": document_id, "of_version": version, "data": data}
        for document_id, version, data in documents
    ]
    if rows:
        connection.execute(_ADD, rows)


def add_superseded(
    connection: Connection, document_id: str, state: VersionState, at: float
) -> None:
    """Record that the versions in this state are about to be superseded."""
    connection.execute(_ADD_SUPERSEDED, {"of_document": document_id, "in_state": state, "at": at})


def add_deleted(connection: Connection, where: ColumnElement[bool], at: float) -> None:
    """Record the documents that this transaction has just marked as deleted at `at`."""
    gone = literal("document.deleted")
    connection.execute(
        insert(outbox_tables.events).from_select(
            _COLUMNS,
            select(*_OF_DOCUMENT, null(), gone, null(), _D.deleted_at, null()).where(
                where, _D.deleted_at == at
            ),
        )
    )


class Events:
    """Reads events and deletes old ones."""

    def __init__(self, database: Database, reader: Reader | None = None) -> None:
        self._database, self._reader = database, reader

    def of_document(self, document_id: str, *, after: int, limit: int = 200) -> list[Event]:
        """Events of a document in order of event ids, starting after the id `after`."""
        query = (
            select(outbox_tables.events)
            .where(_E.document_id == document_id, _E.event_id > after)
            .where(of_readable(_E.document_id, self._reader))
            .order_by(_E.event_id)
            .limit(limit)
        )
        with self._database.reading() as connection:
            events = [event_of(row) for row in connection.execute(query)]
        return [replace(e, data=readable_counts(e.data, self._reader)) for e in events]

    def corpus_version(self, collection: str, tenant: str) -> int:
        """The corpus version of a collection or tenant; it changes when searches see other data.

        If two transactions end at once, searches may see first one and then both of them under the
        same corpus version.
        """
        with self._database.reading() as connection:
            return int(connection.scalar(_VERSION, {"corpus": collection, "of": tenant}) or 0)

    def before_version(self, document_id: str, version: int) -> int:
        """The event id after which all events of the version follow."""
        query = select(func.min(_E.event_id)).where(
            _E.document_id == document_id, _E.version == version
        )
        with self._database.reading() as connection:
            return (connection.scalar(query) or 1) - 1

    def trim(self, before: float) -> int:
        """Delete events from before this time. Returns the number of deleted events."""
        oldest = select(_E.event_id, _E.at).order_by(_E.event_id).limit(TRIMMED_PER_TRANSACTION)
        trimmed = 0
        while True:
            with self._database.writing() as connection:
                old = _older(connection.execute(oldest).all(), before)
                if old:
                    connection.execute(delete(outbox_tables.events).where(_E.event_id <= old[-1]))
            trimmed += len(old)
            if len(old) < TRIMMED_PER_TRANSACTION:
                return trimmed


def event_of(row: Row[Any]) -> Event:
    """An event from its row."""
    return Event(**{name: getattr(row, name) for name in Event.__dataclass_fields__})


def _older(rows: Iterable[Any], before: float) -> list[int]:
    """Ids up to the first event that must stay; apart from short moments ids grow with time."""
    ids = []
    for row in rows:
        if row.at >= before:
            break
        ids.append(row.event_id)
    return ids
