"""Dead letters: documents whose newest version failed for good, and letting them be tried again."""

import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, func, select

from stores.ledger import schema
from stores.ledger.database import Database
from stores.ledger.locks import lock_document
from stores.ledger.records import Failure
from stores.ledger.versions import newest_of, requeue

_D, _V, _S = schema.documents.c, schema.versions.c, schema.steps.c


@dataclass(frozen=True)
class DeadLetter:
    """A document that was set aside. `crashes` of the attempts ended with their worker."""

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
    """Which dead letters; every value that is given must hold.

    They failed before `before`, and at `since` or after.
    """

    document_ids: Collection[str] | None = None
    collection: str | None = None
    tenant: str | None = None
    reason: str | None = None
    before: float | None = None
    since: float | None = None


class Failures:
    """Listing dead letters and queueing them again."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(
        self, which: Which, *, limit: int = 100, after: tuple[float, str] | None = None
    ) -> list[DeadLetter]:
        """The latest first; `after` is the time and the document id of the last one seen."""
        query = _failed(which).limit(limit)
        if after is not None:
            at, document_id = after
            query = query.where(
                (_V.finished_at < at) | ((_V.finished_at == at) & (_D.document_id > document_id))
            )
        with self._database.reading() as connection:
            return [_dead_letter(row) for row in connection.execute(query)]

    def retry(self, which: Which, *, limit: int = 1000) -> list[DeadLetter]:
        """Let dead letters wait for their turn again, each from the step that failed.

        What became something else meanwhile is left alone. Returns those that wait now, at most
        `limit`: where it is as many, there may be more.
        """
        now = time.time()
        again = []
        for letter in self.find(which, limit=limit):
            with self._database.writing() as connection:  # short: workers wait for SQLite's lock
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
