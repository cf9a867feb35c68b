"""What happened to documents: an outbox, written in the transaction of the change itself.

So no event is lost and none is told of what did not happen. Whoever changes a document has locked
it (`locks`): the ids of its events grow in the order in which they happened.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, get_args

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

from stores.ledger import schema
from stores.ledger.database import Database
from stores.ledger.records import Step, VersionState

_E, _D, _V = schema.events.c, schema.documents.c, schema.versions.c

EventKind = Literal[
    "document.queued",
    "document.live",
    "document.failed",
    "document.superseded",
    "document.deleted",
    "document.removed",
    "step.started",
    "step.finished",
    "step.retrying",
    "step.failed",
]
KINDS: tuple[EventKind, ...] = get_args(EventKind)
"""removed: nothing of a deleted document is left; retrying: a step is put back for a while."""

TRIMMED_PER_TRANSACTION = 2000
"""Workers wait for SQLite's write lock meanwhile."""

_COLUMNS = ["document_id", "collection", "tenant", "version", "kind", "step", "at", "data"]
_OF_DOCUMENT = (_D.document_id, _D.collection, _D.tenant)
_GIVEN = ("kind", "step", "at", "data")

# Statements of the hot path are built once: building one costs more than running it.
_ADD = insert(schema.events).from_select(
    _COLUMNS,
    select(
        *_OF_DOCUMENT,
        bindparam("of_version", type_=_E.version.type),
        *(bindparam(name, type_=_E[name].type) for name in _GIVEN),
    ).where(_D.document_id == bindparam("of_document")),
)
_ADD_SUPERSEDED = insert(schema.events).from_select(
    _COLUMNS,
    select(
        *_OF_DOCUMENT, _V.version, literal("document.superseded"), null(), bindparam("at"), null()
    )
    .join(schema.versions, _V.document_id == _D.document_id)
    .where(_D.document_id == bindparam("of_document"), _V.state == bindparam("in_state")),
)

_STAMP = select(func.max(_E.event_id)).where(
    _E.collection == bindparam("corpus"), _E.tenant == bindparam("of"), schema.CHANGES_A_CORPUS
)


@dataclass(frozen=True)
class Event:
    """One thing that happened. `data` has a step's counts, attempt or failure."""

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
    """Record within a transaction what it does to a document that it has locked."""
    given = {"kind": kind, "step": step, "at": at, "data": data}
    connection.execute(_ADD, given | {"of_document": document_id, "of_version": version})


def add_superseded(
    connection: Connection, document_id: str, state: VersionState, at: float
) -> None:
    """Record that the versions in this state are about to be superseded."""
    connection.execute(_ADD_SUPERSEDED, {"of_document": document_id, "in_state": state, "at": at})


def add_deleted(connection: Connection, where: ColumnElement[bool], at: float) -> None:
    """Record the documents that this transaction has just marked as deleted at `at`."""
    gone = literal("document.deleted")
    connection.execute(
        insert(schema.events).from_select(
            _COLUMNS,
            select(*_OF_DOCUMENT, null(), gone, null(), _D.deleted_at, null()).where(
                where, _D.deleted_at == at
            ),
        )
    )


class Events:
    """Reading what happened, and forgetting it after a time."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of_document(self, document_id: str, *, after: int, limit: int = 200) -> list[Event]:
        """Events of a document in their order, from the one after `after`."""
        query = (
            select(schema.events)
            .where(_E.document_id == document_id, _E.event_id > after)
            .order_by(_E.event_id)
            .limit(limit)
        )
        with self._database.reading() as connection:
            return [event_of(row) for row in connection.execute(query)]

    def corpus_stamp(self, collection: str, tenant: str) -> int:
        """Which state of a collection, or of a tenant's part, searches see now; another, other.

        Two transactions that end at once may be seen one by one under the same stamp.
        """
        with self._database.reading() as connection:
            return int(connection.scalar(_STAMP, {"corpus": collection, "of": tenant}) or 0)

    def before_version(self, document_id: str, version: int) -> int:
        """The id to go on after so as to see all that happened to a version."""
        query = select(func.min(_E.event_id)).where(
            _E.document_id == document_id, _E.version == version
        )
        with self._database.reading() as connection:
            return (connection.scalar(query) or 1) - 1

    def trim(self, before: float) -> int:
        """Forget what happened before this time; returns how many events that were."""
        oldest = select(_E.event_id, _E.at).order_by(_E.event_id).limit(TRIMMED_PER_TRANSACTION)
        trimmed = 0
        while True:
            with self._database.writing() as connection:
                found = _older(connection.execute(oldest).all(), before)
                if found:
                    connection.execute(delete(schema.events).where(_E.event_id <= found[-1]))
            trimmed += len(found)
            if len(found) < TRIMMED_PER_TRANSACTION:
                return trimmed


def event_of(row: Row[Any]) -> Event:
    """An event from its row."""
    return Event(**{name: getattr(row, name) for name in Event.__dataclass_fields__})


def _older(rows: Iterable[Any], before: float) -> list[int]:
    """Ids up to the first event that is to be kept: ids grow with time, but for a moment."""
    ids = []
    for row in rows:
        if row.at >= before:
            break
        ids.append(row.event_id)
    return ids
