"""The one lock that keeps changes of a document apart.

Whatever changes a document, its versions, steps or chunks locks the document's row first: so such
changes happen one after the other and never wait for each other in a ring. On SQLite the lock is
the whole database's (`Database.writing`) and `FOR UPDATE` is left out of the statement.
"""

from typing import Any

from sqlalchemy import Connection, Row, bindparam, select

from stores.ledger import schema
from stores.ledger.records import STEPS

_D, _S = schema.documents.c, schema.steps.c

# Statements of the hot path are built once: building one costs more than running it.
_DOCUMENT = select(schema.documents).where(
    _D.document_id == bindparam("document_id"), _D.deleted_at.is_(None)
)
_LOCK = _DOCUMENT.with_for_update()
_LOCK_IF_FREE = _DOCUMENT.with_for_update(skip_locked=True)
_STEPS = select(schema.steps).where(
    _S.document_id == bindparam("document_id"), _S.version == bindparam("version")
)


def lock_document(
    connection: Connection, document_id: str, *, skip_locked: bool = False
) -> Row[Any] | None:
    """The row of a document, locked until the transaction ends; None where it is deleted or gone.

    With `skip_locked` also None where another transaction holds it.
    """
    lock = _LOCK_IF_FREE if skip_locked else _LOCK
    return connection.execute(lock, {"document_id": document_id}).one_or_none()


def steps_of(connection: Connection, document_id: str, version: int) -> list[Row[Any]]:
    """The rows of a version's steps in order; they hold still while the document is locked."""
    rows = connection.execute(_STEPS, {"document_id": document_id, "version": version}).all()
    return sorted(rows, key=lambda row: STEPS.index(row.step))
