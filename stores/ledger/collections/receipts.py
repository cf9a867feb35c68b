"""Receipts of deleted collections and tenants: counts of their data before and after removal."""

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, insert, select, update

from callslip.stores.ledger.base import schema
from callslip.stores.ledger.base.database import Database

_R, _D, _T, _N = (
    schema.receipts.c,
    schema.documents.c,
    schema.tenants.c,
    schema.collections.c,
)


@dataclass(frozen=True)
class Receipt:
    """The numbers of objects by store and index; of the whole collection if `tenant` is empty.

    `after` and `removed_at` are None until everything is removed.
    """

    collection: str
    tenant: str
    deleted_at: float
    removed_at: float | None
    before: Mapping[str, int]
    after: Mapping[str, int] | None


class Receipts:
    """Receipts, which remain when all other rows of a collection or a tenant are deleted."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self, collection: str, tenant: str, counts: Mapping[str, int]) -> None:
        """Record the counts of a deleted collection or tenant before its removal begins.

        An interrupted removal that begins again counts less, so the greater numbers stay.
        """
        with self._database.writing() as connection:
            key = _key(connection, collection, tenant)
            known = connection.scalar(select(_R.before).where(*_is(key)))
            if key["deleted_at"] is None:
                return  # another process has removed it and deleted its rows
            if known is None:
                row = {**key, "before": dict(counts)}
                connection.execute(insert(schema.receipts).values(row))
            else:
                connection.execute(
                    update(schema.receipts)
                    .where(*_is(key), _R.removed_at.is_(None))
                    .values(before=greatest(known, counts))
                )

    def finish(self, collection: str, tenant: str, counts: Mapping[str, int]) -> None:
        """Record the remaining counts before the rows of the collection or tenant are deleted."""
        with self._database.writing() as connection:
            key = _key(connection, collection, tenant)
            before = connection.scalar(select(_R.before).where(*_is(key))) or {}
            connection.execute(
                update(schema.receipts)
                .where(*_is(key), _R.removed_at.is_(None))
                .values(after=dict.fromkeys(before, 0) | dict(counts), removed_at=time.time())
            )

    def find(self, collection: str) -> list[Receipt]:
        """The receipts of every collection with this name and of its tenants, newest first."""
        with self._database.reading() as connection:
            rows = connection.execute(
                select(schema.receipts)
                .where(_R.collection == collection)
                .order_by(_R.deleted_at.desc(), _R.tenant)
            )
            return [Receipt(**row._mapping) for row in rows]

    def of_documents(self, collection: str, tenant: str) -> Counter[str]:
        """The sums of the counts of a deleted tenant's documents."""
        total: Counter[str] = Counter()
        deleted = select(_T.deleted_at).where(_T.collection == collection, _T.name == tenant)
        with self._database.reading() as connection:
            rows = connection.scalars(
                select(_D.receipt)
                .where(_D.collection == collection, _D.tenant == tenant)
                .where(_D.deleted_at == deleted.scalar_subquery())
            )
            for receipt in rows:
                total["documents"] += 1
                total.update((receipt or {}).get("before", {}))
        return total


def _key(connection: Connection, collection: str, tenant: str) -> dict[str, Any]:
    """The key of a receipt; its time of deletion is needed because a name can be deleted often."""
    if tenant:
        query = select(_T.deleted_at).where(_T.collection == collection, _T.name == tenant)
    else:
        query = select(_N.deleted_at).where(_N.name == collection)
    deleted_at = connection.scalar(query)
    return {"collection": collection, "tenant": tenant, "deleted_at": deleted_at}


def _is(key: Mapping[str, Any]) -> list[ColumnElement[bool]]:
    return [_R[name] == value for name, value in key.items()]


def greatest(known: Mapping[str, int], counts: Mapping[str, int]) -> dict[str, int]:
    """The greater of the two counts of each name."""
    return {name: max(known.get(name, 0), counts.get(name, 0)) for name in {**known, **counts}}
