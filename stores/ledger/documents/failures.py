"""Lists dead letters (documents whose newest version failed permanently) and queues them again."""

import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, func, select

from callslip.readers import Reader
from callslip.stores.ledger.base import schema
from callslip.stores.ledger.base.database import Database
from callslip.stores.ledger.base.locks import lock_document
from callslip.stores.ledger.base.readable import readable
from callslip.stores.ledger.base.records import Failure
from callslip.stores.ledger.documents.versions import newest_of, requeue

_D, _V, _S = schema.documents.c, schema.versions.c, schema.steps.c


@dataclass(frozen=True)
class DeadLetter:
    """A document whose newest version failed permanently.

    `attempts` and `crashes` are those of the failed step; `crashes` counts the attempts during
    which the worker died. Times are UTC seconds since 1970.
    """

    document_id: str
    version: int
    collection: str
    tenant: str
    name: str
    live_version: int | None
    failure: Failure
    attempts: int
    crashes: int
    submitted_at: float
    failed_at: float


@dataclass(frozen=True)
class Which:
    """A filter on dead letters; a dead letter must match every field that is not None.

    `collections` and `tenants` are those that the caller may see. The failure must lie before
    `before`, and at or after `since` (UTC seconds since 1970).
    """

    document_ids: Collection[str] | None = None
    collection: str | None = None
    tenant: str | None = None
    reason: str | None = None
    before: float | None = None
    since: float | None = None
    collections: Collection[str] | None = None
    tenants: Collection[str] | None = None


class Failures:
    """Lists dead letters and queues them again."""

    def __init__(self, database: Database, reader: Reader | None = None) -> None:
        self._database, self._reader = database, reader

    def find(
        self, which: Which, *, limit: int = 100, after: tuple[float, str] | None = None
    ) -> list[DeadLetter]:
        """List at most `limit` dead letters, the latest failure first.

        For the next page, `after` is the failure time and the document id of the previous page's
        last dead letter.
        """
        query = _failed(which).where(readable(self._reader)).limit(limit)
        if after is not None:
            at, document_id = after
            query = query.where(
                (_V.finished_at < at) | ((_V.finished_at == at) & (_D.document_id > document_id))
            )
        with self._database.reading() as connection:
            return [_dead_letter(row) for row in connection.execute(query)]

    def retry(self, which: Which, *, limit: int = 1000) -> list[DeadLetter]:
        """Put dead letters back into their tenant queues; each continues at the step that failed.

        Skips a document that has changed since it was listed. Returns the dead letters that were
        queued. If their number is `limit`, there may be more.
        """
        now = time.time()
        again = []
        for letter in self.find(which, limit=limit):
            with (
                self._database.writing() as connection
            ):  # a short transaction per document: workers wait for SQLite's lock
                document = lock_document(connection, letter.document_id)
                if document is None:
                    continue
                newest = newest_of(connection, letter.document_id)
                if (newest.version, newest.state) == (letter.version, "failed"):
                    requeue(connection, document, letter.version, now)
                    again.append(letter)
        return again


def _failed(which: Which) -> Select[Any]:
    same = (_S.document_id == _V.document_id) & (_S.version == _V.version)
    others = schema.versions.alias()
    newest = (
        select(func.max(others.c.version))
        .where(others.c.document_id == _V.document_id)
        .scalar_subquery()
    )
    query = (
        select(
            schema.versions,
            *(_D.collection, _D.tenant, _D.name, _D.live_version, _S.attempts, _S.crashes),
        )
        .join(schema.documents, _D.document_id == _V.document_id)
        .join(schema.steps, same & (_S.state == "failed"))
        .where(_V.state == "failed", _V.version == newest, _D.deleted_at.is_(None))
        .order_by(_V.finished_at.desc(), _D.document_id)
    )
    if which.document_ids is not None:
        query = query.where(_D.document_id.in_(list(which.document_ids)))
    if which.collection is not None:
        query = query.where(_D.collection == which.collection)
    if which.tenant is not None:
        query = query.where(_D.tenant == which.tenant)
    if which.collections is not None:
        query = query.where(_D.collection.in_(list(which.collections)))
    if which.tenants is not None:
        query = query.where(_D.tenant.in_(list(which.tenants)))
    if which.reason is not None:
        query = query.where(_V.error["type"].as_string() == which.reason)
    if which.before is not None:
        query = query.where(_V.finished_at < which.before)
    if which.since is not None:
        query = query.where(_V.finished_at >= which.since)
    return query


def _dead_letter(row: Any) -> DeadLetter:
    return DeadLetter(
        document_id=row.document_id,
        version=row.version,
        collection=row.collection,
        tenant=row.tenant,
        name=row.name,
        live_version=row.live_version,
        failure=Failure(**row.error),
        attempts=row.attempts,
        crashes=row.crashes,
        submitted_at=row.created_at,
        failed_at=row.finished_at,
    )
