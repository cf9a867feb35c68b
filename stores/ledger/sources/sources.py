"""Sources in the ledger: the origins of documents, and when each one is read next.

`callslip source sync` only makes a source due. The workers then run it under a lease
(stores/ledger/sources/runs.py).
"""

import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Connection, Row, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from callslip.errors import CollectionNotFound, SourceExists
from callslip.readers import Readers
from callslip.stores.ledger.base import schema
from callslip.stores.ledger.base.attached import check_ours
from callslip.stores.ledger.base.database import Database
from callslip.stores.ledger.base.records import Failure
from callslip.stores.records import Properties

_R, _I, _C = schema.sources.c, schema.source_items.c, schema.collections.c

Outcome = Literal["new", "changed", "unchanged", "duplicate", "failed", "deleted"]
"""The outcome of one file in one run. duplicate: another document already has its content."""

RESEND_SECONDS = 60.0
"""Seconds after which a due source that no worker has claimed is sent again."""


@dataclass(frozen=True)
class SourceRecord:
    """A source, with the result of its last run or the progress of the current one."""

    source_id: str
    collection: str
    tenant: str
    name: str
    url: str
    properties: Properties
    every_seconds: float | None
    delete_missing: bool
    created_at: float
    due_at: float | None
    run: int
    began_at: float | None
    ended_at: float | None
    counts: dict[str, int]
    failure: Failure | None
    readers: Readers | None = None


class Sources:
    """Adds, finds, triggers and removes sources."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(
        self,
        collection: str,
        name: str,
        url: str,
        *,
        tenant: str = "",
        properties: Properties | None = None,
        every_seconds: float | None = None,
        delete_missing: bool = False,
        readers: Readers | None = None,
    ) -> SourceRecord:
        """Record a source that is due at once. A repeated call returns the same source.

        Raises SourceExists if the name is taken with other settings, CollectionNotFound if the
        collection does not exist, AttachedReadOnly if it is an attached table.
        """
        now = time.time()
        wanted = {
            "url": url,
            "properties": dict(properties or {}),
            "every_seconds": every_seconds,
            "delete_missing": delete_missing,
            "readers": None if readers is None else list(readers),
        }
        key = {"collection": collection, "tenant": tenant, "name": name}
        there = select(_C.name).where(_C.name == collection, _C.deleted_at.is_(None))
        with self._database.writing() as connection:
            if connection.scalar(there.with_for_update(read=True)) is None:
                raise CollectionNotFound(f"collection {collection!r} does not exist")
            check_ours(connection, collection)
            row = connection.execute(_named(collection, tenant, name)).one_or_none()
            if row is None:
                source = {"source_id": uuid.uuid4().hex, "created_at": now, "due_at": now}
                try:
                    connection.execute(insert(schema.sources).values(**key, **wanted, **source))
                except IntegrityError:  # PostgreSQL: another process was first
                    raise SourceExists(f"source {name!r} was added at the same moment") from None
                row = connection.execute(_named(collection, tenant, name)).one()
            elif any(getattr(row, column) != value for column, value in wanted.items()):
                raise SourceExists(f"source {name!r} of {collection!r} exists: {row.url}")
        return source_record(row)

    def all(self) -> list[SourceRecord]:
        """Every source, by collection, tenant and name."""
        query = select(schema.sources).order_by(_R.collection, _R.tenant, _R.name)
        with self._database.reading() as connection:
            return [source_record(row) for row in connection.execute(query)]

    def find(self, collection: str, name: str, *, tenant: str = "") -> SourceRecord | None:
        """The source with this name; None if there is none."""
        with self._database.reading() as connection:
            row = connection.execute(_named(collection, tenant, name)).one_or_none()
        return None if row is None else source_record(row)

    def ask(self, source_id: str, *, delete_missing: bool = False, force: bool = False) -> None:
        """Make a source due now; both options apply to the next run only."""
        request = {"delete_missing": delete_missing, "force": force}
        with self._database.writing() as connection:
            connection.execute(
                update(schema.sources)
                .where(_R.source_id == source_id)
                .values(due_at=time.time(), dispatched_at=0.0, asked=request)
            )

    def due(self, limit: int = 100) -> list[str]:
        """Ids of sources that a worker should claim now; marks them as sent."""
        now = time.time()
        query = (
            select(_R.source_id)
            .where(_R.due_at <= now, _R.lease_until < now, _R.dispatched_at < now - RESEND_SECONDS)
            .order_by(_R.due_at)
            .limit(limit)
        )
        with self._database.reading() as connection:
            ids = list(connection.scalars(query))
        if ids:
            with self._database.writing() as connection:
                connection.execute(
                    update(schema.sources).where(_R.source_id.in_(ids)).values(dispatched_at=now)
                )
        return ids

    def seen(self, source: SourceRecord) -> int:
        """The number of files that the source's current or last run has seen so far."""
        query = select(func.count()).where(
            _I.source_id == source.source_id, _I.seen_run == source.run
        )
        with self._database.reading() as connection:
            return int(connection.scalar(query) or 0)

    def remove(self, source_id: str) -> None:
        """Delete a source and its items; its documents stay. Idempotent."""
        with self._database.writing() as connection:
            drop_sources(connection, _R.source_id == source_id)

    def document_ids(self, source_id: str) -> list[str]:
        """Ids of the documents that were fetched from a source."""
        query = select(_I.document_id).where(_I.source_id == source_id)
        with self._database.reading() as connection:
            return [i for i in connection.scalars(query.distinct()) if i is not None]

    def failures(self, source_id: str, limit: int = 100) -> Mapping[str, Failure]:
        """The reason for each file that the last run did not import, by path."""
        query = (
            select(_I.path, _I.error)
            .join(schema.sources, (_R.source_id == _I.source_id) & (_R.run == _I.seen_run))
            .where(_I.source_id == source_id, _I.outcome.in_(("failed", "duplicate")))
            .order_by(_I.path)
            .limit(limit)
        )
        with self._database.reading() as connection:
            return {row.path: Failure(**row.error) for row in connection.execute(query)}


def drop_sources(connection: Connection, which: Any) -> None:
    """Delete sources within a transaction, when their collection or tenant is deleted."""
    ids = list(connection.scalars(select(_R.source_id).where(which)))
    connection.execute(delete(schema.source_items).where(_I.source_id.in_(ids)))
    connection.execute(delete(schema.sources).where(_R.source_id.in_(ids)))


def source_record(row: Row[Any]) -> SourceRecord:
    """A source from its row."""
    return SourceRecord(
        source_id=row.source_id,
        collection=row.collection,
        tenant=row.tenant,
        name=row.name,
        url=row.url,
        properties=row.properties,
        every_seconds=row.every_seconds,
        delete_missing=row.delete_missing,
        created_at=row.created_at,
        due_at=row.due_at,
        run=row.run,
        began_at=row.began_at,
        ended_at=row.ended_at,
        counts=row.counts or {},
        failure=Failure(**row.error) if row.error else None,
        readers=None if row.readers is None else tuple(row.readers),
    )


def _named(collection: str, tenant: str, name: str) -> Any:
    return select(schema.sources).where(
        _R.collection == collection, _R.tenant == tenant, _R.name == name
    )
