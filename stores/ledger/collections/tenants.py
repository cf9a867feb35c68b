"""Tenants of collections in the ledger."""

import time

from sqlalchemy import Connection, Select, delete, exists, func, select, update
from sqlalchemy.dialects import postgresql, sqlite

from callslip.errors import Conflict, TenantNotFound
from callslip.stores.ledger.base import schema
from callslip.stores.ledger.base.database import Database
from callslip.stores.ledger.base.fair_queue import withdraw
from callslip.stores.ledger.base.memory_tables import forget_scope
from callslip.stores.ledger.outbox import events
from callslip.stores.ledger.sources.sources import drop_sources

_T, _D = schema.tenants.c, schema.documents.c


class Tenants:
    """Creates, finds and deletes tenants."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(self, collection: str, name: str) -> None:
        """Create a tenant.

        Idempotent. Raises Conflict while a tenant of this name is being removed.
        """
        with self._database.writing() as connection:
            make_tenant(connection, collection, name, time.time())

    def check(self, collection: str, name: str) -> None:
        """Raise TenantNotFound unless the tenant exists."""
        with self._database.reading() as connection:
            row = connection.scalar(_open(collection, name))
        if row is None:
            raise _missing(collection, name)

    def all(self, collection: str) -> list[str]:
        """The names of a collection's tenants, sorted."""
        with self._database.reading() as connection:
            return list(
                connection.scalars(
                    select(_T.name)
                    .where(_T.collection == collection, _T.deleted_at.is_(None))
                    .order_by(_T.name)
                )
            )

    def largest(self, collection: str) -> str | None:
        """The tenant with the most live documents; None if there is none."""
        query = (
            select(_D.tenant)
            .where(_D.collection == collection, _D.deleted_at.is_(None))
            .where(_D.live_version.is_not(None))
            .group_by(_D.tenant)
            .order_by(func.count().desc(), _D.tenant)
            .limit(1)
        )
        with self._database.reading() as connection:
            return connection.scalar(query)

    def names(self, collection: str) -> set[str]:
        """The names of a collection's tenants, including those that are being removed."""
        with self._database.reading() as connection:
            return set(connection.scalars(select(_T.name).where(_T.collection == collection)))

    def delete(self, collection: str, name: str) -> list[str]:
        """Hide a tenant and its documents at once, and return the documents' ids.

        The documents are removed one by one, each with its receipt; then `forget` is called.
        """
        now = time.time()
        mine = (_D.collection == collection) & (_D.tenant == name)
        with self._database.writing() as connection:
            hidden = connection.execute(
                update(schema.tenants)
                .where(_T.collection == collection, _T.name == name, _T.deleted_at.is_(None))
                .values(deleted_at=now)
            )
            if hidden.rowcount == 0:
                raise _missing(collection, name)
            ids = list(
                connection.scalars(select(_D.document_id).where(mine, _D.deleted_at.is_(None)))
            )
            connection.execute(
                update(schema.documents).where(mine, _D.deleted_at.is_(None)).values(deleted_at=now)
            )
            withdraw(connection, mine, now)
            events.add_deleted(connection, mine, now)
            of = schema.sources.c
            drop_sources(connection, (of.collection == collection) & (of.tenant == name))
        return ids

    def emptied(self) -> list[tuple[str, str]]:
        """Deleted tenants (collection, name) whose documents have all been removed."""
        left = exists().where(
            _D.collection == _T.collection, _D.tenant == _T.name, _D.removed_at.is_(None)
        )
        with self._database.reading() as connection:
            rows = connection.execute(
                select(_T.collection, _T.name).where(_T.deleted_at.is_not(None), ~left)
            )
            return [(row.collection, row.name) for row in rows]

    def forget(self, collection: str, name: str) -> None:
        """Delete the rows of a deleted tenant that no store has any more. The name is then free."""
        with self._database.writing() as connection:
            gone = connection.execute(
                delete(schema.tenants).where(
                    _T.collection == collection, _T.name == name, _T.deleted_at.is_not(None)
                )
            )
            if gone.rowcount:
                of = schema.audiences.c
                connection.execute(
                    delete(schema.audiences).where(of.collection == collection, of.tenant == name)
                )
                forget_scope(connection, collection, name)


def make_tenant(connection: Connection, collection: str, name: str, now: float) -> None:
    """Create a tenant within a transaction.

    Locks it against deletion until the transaction ends. Raises Conflict while one of this name is
    being removed.
    """
    query = select(_T.deleted_at).where(_T.collection == collection, _T.name == name)
    locking = query.with_for_update(read=True)
    row = connection.execute(locking).one_or_none()
    if row is None:
        adding = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
        values = {"collection": collection, "name": name, "created_at": now}
        connection.execute(adding(schema.tenants).values(values).on_conflict_do_nothing())
        row = connection.execute(locking).one()  # another transaction may have made it
    if row.deleted_at is not None:
        raise Conflict(
            f"tenant {name!r} of {collection!r} is being removed", hint="Try again in a moment."
        )


def _open(collection: str, name: str) -> Select[str]:
    return select(_T.name).where(
        _T.collection == collection, _T.name == name, _T.deleted_at.is_(None)
    )


def _missing(collection: str, name: str) -> TenantNotFound:
    return TenantNotFound(f"Collection {collection} has no tenant {name!r}.")
