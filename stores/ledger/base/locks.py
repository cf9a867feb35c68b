"""The document lock, which serializes all changes of one document.

Every transaction that changes a document, its versions, steps or chunks locks the document's row
first, so that such transactions run one after the other and cannot deadlock. A transaction of the
steps of several documents locks them in the order of their ids; deletions and changes of readers
lock many in another order, so `Leases` repeats a common transaction that failed for each document
alone. SQLite locks the whole database (`Database.writing`) and SQLAlchemy omits `FOR UPDATE` from
its statements.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, Row, bindparam, select

from callslip.stores.ledger.base import schema
from callslip.stores.ledger.base.records import STEPS

_D, _S = schema.documents.c, schema.steps.c

# Statements of the hot path are built once: building one costs more than running it.
_DOCUMENT = select(schema.documents).where(
    _D.document_id == bindparam("document_id"), _D.deleted_at.is_(None)
)
_LOCK = _DOCUMENT.with_for_update()
_LOCK_ALL = (
    select(schema.documents)
    .where(_D.document_id.in_(bindparam("ids", expanding=True)), _D.deleted_at.is_(None))
    .order_by(_D.document_id)
    .with_for_update()
)
_LOCK_IF_FREE = _DOCUMENT.with_for_update(skip_locked=True)
_STEPS = select(schema.steps).where(
    _S.document_id == bindparam("document_id"), _S.version == bindparam("version")
)
_STEPS_OF_ALL = select(schema.steps).where(
    _S.document_id.in_(bindparam("ids", expanding=True)),
    _S.version.in_(bindparam("versions", expanding=True)),
)

VersionKey = tuple[str, int]
"""The id of a document, and the number of a version."""


def lock_document(
    connection: Connection, document_id: str, *, skip_locked: bool = False
) -> Row[Any] | None:
    """The row of a document, locked until the transaction ends; None if it is deleted or missing.

    With `skip_locked` also None if another transaction has the lock.
    """
    lock = _LOCK_IF_FREE if skip_locked else _LOCK
    return connection.execute(lock, {"document_id": document_id}).one_or_none()


def lock_documents(connection: Connection, ids: Iterable[str]) -> dict[str, Row[Any]]:
    """The rows of documents by id, locked in the order of their ids; without deleted ones."""
    rows = connection.execute(_LOCK_ALL, {"ids": sorted(set(ids))})
    return {row.document_id: row for row in rows}


def steps_of(connection: Connection, document_id: str, version: int) -> list[Row[Any]]:
    """The rows of a version's steps, in order. They cannot change while the document is locked."""
    rows = connection.execute(_STEPS, {"document_id": document_id, "version": version}).all()
    return sorted(rows, key=lambda row: STEPS.index(row.step))


def steps_of_all(
    connection: Connection, versions: Sequence[VersionKey]
) -> dict[VersionKey, list[Row[Any]]]:
    """The rows of the steps of each version, as `steps_of` returns them."""
    steps: dict[VersionKey, list[Row[Any]]] = {version: [] for version in versions}
    ids, numbers = zip(*versions, strict=True) if versions else ((), ())
    rows = connection.execute(_STEPS_OF_ALL, {"ids": ids, "versions": sorted(set(numbers))}).all()
    for row in sorted(rows, key=lambda row: STEPS.index(row.step)):
        if (version := (row.document_id, row.version)) in steps:
            steps[version].append(row)
    return steps
