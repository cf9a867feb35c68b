"""Receipts of deleted collections and tenants: what was held before, and what is left."""

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, insert, select, update

from stores.ledger import schema
from stores.ledger.database import Database

_R, _D, _T, _N = (
    schema.receipts.c,
    schema.documents.c,
    schema.tenants.c,
    schema.collections.c,
)


@dataclass(frozen=True)
class Receipt:
    """Objects by store and half; of a whole collection where `tenant` is empty.

    `after` and `removed_at` are None until nothing is left.
    """

    collection: str
    tenant: str
    deleted_at: float
    removed_at: float | None
    before: Mapping[str, int]
    after: Mapping[str, int] | None


class Receipts:
    """Kept when everything else of a collection or a tenant is forgotten."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self, collection: str, tenant: str, counts: Mapping[str, int]) -> None:
        """Record what is held of a deleted collection or tenant before the first of it goes.

        A removal that was interrupted and begins again finds less: the greater numbers stay.
        """
        with self._database.writing() as connection:
            key = _key(connection, collection, tenant)
            known = connection.scalar(select(_R.before).where(*_is(key)))
            if key["deleted_at"] is None:
                return  # somebody else has removed and forgotten it
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
        """Record what is left, before the collection or the tenant is forgotten."""
        with self._database.writing() as connection:
            key = _key(connection, collection, tenant)
            before = connection.scalar(select(_R.before).where(*_is(key))) or {}
            connection.execute(
                update(schema.receipts)
                .where(*_is(key), _R.removed_at.is_(None))
                .values(after=dict.fromkeys(before, 0) | dict(counts), removed_at=time.time())
            )

    def find(self, collection: str) -> list[Receipt]:
        """Of every collection of this name and its tenants, newest first."""
        with self._database.reading() as connection:
            rows = connection.execute(
                select(schema.receipts)
                .where(_R.collection == collection)
                .order_by(_R.deleted_at.desc(), _R.tenant)
            )
            return [Receipt(**row._mapping) for row in rows]

    def of_documents(self, collection: str, tenant: str) -> Counter[str]:
        """What the documents that were deleted with a tenant held before, summed."""
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
    """A name may be deleted many times: by when it was."""
    if tenant:
        query = select(_T.deleted_at).where(_T.collection == collection, _T.name == tenant)
    else:
        query = select(_N.deleted_at).where(_N.name == collection)
    deleted_at = connection.scalar(query)
    return {"collection": collection, "tenant": tenant, "deleted_at": deleted_at}


def _is(key: Mapping[str, Any]) -> list[ColumnElement[bool]]:
    return [_R[name] == value for name, value in key.items()]


def greatest(known: Mapping[str, int], counts: Mapping[str, int]) -> dict[str, int]:
    """Of two counts of the same things, the greater of each."""
    return {name: max(known.get(name, 0), counts.get(name, 0)) for name in {**known, **counts}}
