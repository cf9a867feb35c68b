"""Tenants of collections in the ledger."""

import time

from sqlalchemy import Connection, Select, delete, exists, insert, select, update

from callslip.errors import Conflict, TenantNotFound
from stores.ledger import events, schema
from stores.ledger.database import Database
from stores.ledger.memory_tables import forget_place
from stores.ledger.sources import drop_sources
from stores.ledger.turns import withdraw

_T, _D = schema.tenants.c, schema.documents.c


class Tenants:
    """Making, finding and removing tenants."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(self, collection: str, name: str) -> None:
        """Make a tenant. Idempotent; Conflict while one of this name is being removed."""
        with self._database.writing() as connection:
            make_tenant(connection, collection, name, time.time())

    def check(self, collection: str, name: str) -> None:
        """Raise TenantNotFound unless the tenant exists."""
        with self._database.reading() as connection:
            found = connection.scalar(_open(collection, name))
        if found is None:
            raise _missing(collection, name)

    def all(self, collection: str) -> list[str]:
        """The names of a collection's tenants, in order."""
        with self._database.reading() as connection:
            return list(
                connection.scalars(
                    select(_T.name)
                    .where(_T.collection == collection, _T.deleted_at.is_(None))
                    .order_by(_T.name)
                )
            )

    def names(self, collection: str) -> set[str]:
        """The names of a collection's tenants, those that are being removed too."""
        with self._database.reading() as connection:
            return set(connection.scalars(select(_T.name).where(_T.collection == collection)))

    def delete(self, collection: str, name: str) -> list[str]:
        """Hide a tenant and its documents at once; returns their ids.

        The documents are removed one by one, each with its receipt; `forget` follows.
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
        """Deleted tenants (collection, name) of which no document is left to remove."""
        left = exists().where(
            _D.collection == _T.collection, _D.tenant == _T.name, _D.removed_at.is_(None)
        )
        with self._database.reading() as connection:
            rows = connection.execute(
                select(_T.collection, _T.name).where(_T.deleted_at.is_not(None), ~left)
            )
            return [(row.collection, row.name) for row in rows]

    def forget(self, collection: str, name: str) -> None:
        """Drop the rows of a deleted tenant that no store has any more; its name is free again."""
        with self._database.writing() as connection:
            gone = connection.execute(
                delete(schema.tenants).where(
                    _T.collection == collection, _T.name == name, _T.deleted_at.is_not(None)
                )
            )
            if gone.rowcount:
                forget_place(connection, collection, name)


def make_tenant(connection: Connection, collection: str, name: str, now: float) -> None:
    """Make a tenant within a transaction; Conflict while one of this name is being removed."""
    found = connection.execute(
        select(_T.deleted_at).where(_T.collection == collection, _T.name == name)
    ).one_or_none()
    if found is None:
        connection.execute(
            insert(schema.tenants).values(collection=collection, name=name, created_at=now)
        )
    elif found.deleted_at is not None:
        raise Conflict(
            f"tenant {name!r} of {collection!r} is being removed", hint="Try again in a moment."
        )


def _open(collection: str, name: str) -> Select[str]:
    return select(_T.name).where(
        _T.collection == collection, _T.name == name, _T.deleted_at.is_(None)
    )


def _missing(collection: str, name: str) -> TenantNotFound:
    return TenantNotFound(f"Collection {collection} has no tenant {name!r}.")
