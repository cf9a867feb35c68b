"""The readers of documents: who may read each one, and which audiences a store leaves out."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    delete,
    exists,
    literal_column,
    or_,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite

from callslip.errors import Conflict, DocumentNotFound
from callslip.readers import Reader, Readers, audience_of
from callslip.stores.ledger.base import schema
from callslip.stores.ledger.base.database import Database
from callslip.stores.ledger.base.locks import lock_document
from callslip.stores.ledger.base.readable import readable
from callslip.stores.ledger.documents.attachments import below
from callslip.stores.properties.filters import Condition, Where
from callslip.stores.records import AUDIENCE

_D, _V, _R, _A = schema.documents.c, schema.versions.c, schema.readers.c, schema.audiences.c

DUE: ColumnElement[bool] = literal_column("documents.readers_due")
"""As the condition of the partial index says it, so that the databases use the index."""

MOST_AUDIENCES = 300
"""The most lists of readers in a collection or tenant: a search names those to leave out."""

MOST_DUE = 150
"""The most documents that a search leaves out by their ids, while their chunks are rewritten."""


@dataclass(frozen=True)
class Unreadable:
    """What a reader may not read in a collection or tenant.

    `audiences` are lists of readers by their ids. `documents` are those whose chunks in the store
    may have another audience than the ledger; at most MOST_DUE, and `complete` says whether these
    are all.
    """

    audiences: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    complete: bool = True

    def __bool__(self) -> bool:
        return bool(self.audiences or self.documents)

    def left_out_of(self, where: Where | None) -> Where | None:
        """Narrow a filter to chunks that the reader may read, as far as the store knows.

        The ledger decides; a store that leaves chunks out finds others in their place.
        """
        conditions = tuple(
            Condition(prop, "not-in", values)
            for prop, values in ((AUDIENCE, self.audiences), ("document_id", self.documents))
            if values
        )
        if not conditions:
            return where
        return Where((*(where.every if where else ()), *conditions), where.some if where else ())


class DocumentReaders:
    """Reads and changes the readers of documents."""

    def __init__(self, database: Database, reader: Reader | None = None) -> None:
        self._database, self._reader = database, reader

    def of(self, audiences: Iterable[str]) -> dict[str, Readers | None]:
        """The readers of each of these audiences; None for everyone."""
        return read_readers(self._database, audiences)

    def audience(self, document_id: str) -> str:
        """The audience of a document; empty for everyone, and for a document that is gone."""
        query = select(_D.audience).where(_D.document_id == document_id)
        with self._database.reading() as connection:
            return connection.scalar(query) or ""

    def set(self, document_id: str, readers: Readers) -> list[tuple[str, int]]:
        """Replace the readers of a document and of the documents within it, for every version.

        Every query of the ledger obeys at once. Returns the ids and live versions of the documents
        whose chunks in the store are to be written again: reopen the upsert of each.
        Raises DocumentNotFound if the document is deleted, missing or not readable.
        """
        with self._database.writing() as connection:
            return set_readers(connection, locked(connection, document_id, self._reader), readers)

    def due(self, limit: int = 100) -> list[tuple[str, int]]:
        """Ids and live versions of documents whose chunks are to be written with their audience.

        Omits those of which a version is queued: its upsert writes the audience. Omits those whose
        live version failed while it was written again: a retry writes the audience.
        """
        failed = (_V.version == _D.live_version) & (_V.state == "failed")
        left_out = exists().where(
            _V.document_id == _D.document_id, or_(_V.state == "queued", failed)
        )
        query = (
            select(_D.document_id, _D.live_version)
            .where(DUE, _D.deleted_at.is_(None), _D.live_version.is_not(None), ~left_out)
            .limit(limit)
        )
        with self._database.reading() as connection:
            return [(row.document_id, row.live_version) for row in connection.execute(query)]

    def unreadable(self, collection: str, tenant: str) -> Unreadable:
        """What the reader of this ledger may not read in a collection or tenant."""
        if self._reader is None:
            return Unreadable()
        mine = select(_R.audience).where(_R.reader.in_(sorted(self._reader.names)))
        audiences = select(_A.audience).where(
            _A.collection == collection, _A.tenant == tenant, _A.audience.not_in(mine)
        )
        due = (
            select(_D.document_id)
            .where(_D.collection == collection, _D.tenant == tenant, DUE)
            .where(_D.removed_at.is_(None), ~readable(self._reader))
            .order_by(_D.document_id)
            .limit(MOST_DUE + 1)
        )
        with self._database.snapshot() as connection:
            names = sorted(connection.scalars(audiences))
            ids = list(connection.scalars(due))
        return Unreadable(tuple(names), tuple(ids[:MOST_DUE]), len(ids) <= MOST_DUE)


def locked(connection: Connection, document_id: str, reader: Reader | None) -> Row[Any]:
    """The row of a document that the reader may read, locked until the transaction ends.

    Raises DocumentNotFound if the document is deleted, missing or not readable.
    """
    document = lock_document(connection, document_id)
    query = select(_D.document_id).where(_D.document_id == document_id, readable(reader))
    if document is None or connection.scalar(query) is None:
        raise DocumentNotFound(f"document {document_id!r} does not exist")
    return document


def set_readers(
    connection: Connection, document: Row[Any], readers: Readers
) -> list[tuple[str, int]]:
    """Replace the readers of a locked document and of those within it; return which are due."""
    inside = below(connection, [document.document_id])
    ids = [document.document_id, *(row.document_id for row in inside)]
    audience = put_audience(connection, document.collection, document.tenant, readers)
    due: list[tuple[str, int]] = []
    for each in ids:
        row = connection.execute(
            update(schema.documents)
            .where(_D.document_id == each, _D.audience != audience)
            .values(audience=audience, readers_due=True)
            .returning(_D.live_version)
        ).one_or_none()
        if row is not None and row.live_version is not None:
            due.append((each, row.live_version))
    return due


def restrict_as(connection: Connection, document_id: str, parent_id: str) -> None:
    """Give a document that is for everyone the readers of its parent.

    Other readers stay: they are the document's own, or were set together with the parent's.
    """
    audience = connection.scalar(select(_D.audience).where(_D.document_id == parent_id))
    if audience:
        connection.execute(
            update(schema.documents)
            .where(_D.document_id == document_id, _D.audience == "")
            .values(audience=audience, readers_due=True)
        )


def put_audience(connection: Connection, collection: str, tenant: str, readers: Readers) -> str:
    """Record a list of readers within a transaction, and return its audience.

    Raises Conflict if the collection or tenant has too many different lists.
    """
    audience = audience_of(readers)
    if not audience:
        return ""
    here = (_A.collection == collection, _A.tenant == tenant)
    known = set(connection.scalars(select(_A.audience).where(*here)))
    if audience in known:
        return audience
    if len(known) >= MOST_AUDIENCES:
        used = select(_D.audience).where(
            _D.collection == collection, _D.tenant == tenant, _D.removed_at.is_(None)
        )
        connection.execute(delete(schema.audiences).where(*here, _A.audience.not_in(used)))
        if len(list(connection.scalars(select(_A.audience).where(*here)))) >= MOST_AUDIENCES:
            raise Conflict(
                f"the collection or tenant has {MOST_AUDIENCES} different lists of readers",
                hint="Name groups instead of users, or use tenants.",
            )
    insert = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    row = {"collection": collection, "tenant": tenant, "audience": audience}
    connection.execute(insert(schema.audiences).values(row).on_conflict_do_nothing())
    if rows := [{"audience": audience, "reader": reader} for reader in readers]:
        connection.execute(insert(schema.readers).on_conflict_do_nothing(), rows)
    return audience


def read_readers(database: Database, audiences: Iterable[str]) -> dict[str, Readers | None]:
    """The readers of each of these audiences; None for everyone."""
    wanted: Sequence[str] = sorted(set(audiences))
    readers: dict[str, list[str]] = {audience: [] for audience in wanted if audience}
    if readers:
        query = select(_R.audience, _R.reader).where(_R.audience.in_(list(readers)))
        with database.reading() as connection:
            for row in connection.execute(query.order_by(_R.reader)):
                readers[row.audience].append(row.reader)
    return {a: tuple(readers[a]) if a else None for a in wanted}
