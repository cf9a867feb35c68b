"""Batches of submitted documents in the ledger: progress, speed and failures."""

import time
import uuid
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    and_,
    bindparam,
    case,
    delete,
    exists,
    func,
    insert,
    select,
    type_coerce,
    update,
)
from sqlalchemy.exc import IntegrityError

from callslip.errors import BatchNotFound
from callslip.readers import Reader
from callslip.stores.ledger.base import schema
from callslip.stores.ledger.base.database import Database
from callslip.stores.ledger.base.readable import of_readable
from callslip.stores.ledger.base.records import Accepted, BatchItem, BatchReport, Claim, Failure

_B, _I = schema.batches.c, schema.batch_items.c
_D, _V, _S = schema.documents.c, schema.versions.c, schema.steps.c

WINDOW_SECONDS = 300.0
"""Length of the last period over which rates are measured, in seconds."""

ENOUGH_SECONDS, ENOUGH_DOCUMENTS = 10.0, 5
"""The seconds and the live documents that an estimate of the remaining time needs."""

MOST_RECENT = 100
"""The most ids that `recent` returns."""

_UNDERWAY = ("waiting", "working", "stalled")

_OF_ITEM = and_(_V.document_id == _I.document_id, _V.version == _I.version)
_RUNNING = and_(_S.document_id == _I.document_id, _S.version == _I.version, _S.state == "running")
_JOINED = schema.batch_items.outerjoin(schema.versions, _OF_ITEM).outerjoin(
    schema.documents, _D.document_id == _I.document_id
)

# Statements of the hot path are built once: building one costs more than running it.
_EXISTS = select(exists().where(_B.batch_id == bindparam("of")))
_IN_BATCH = select(
    exists().where(*(_I[key] == bindparam(key) for key in ("batch_id", "document_id", "version")))
)
_ADD_ITEM = insert(schema.batch_items)


class Batches:
    """Creates batches and reports their progress."""

    def __init__(self, database: Database, reader: Reader | None = None) -> None:
        self._database, self._reader = database, reader

    def create(self, batch_id: str | None = None, expected: int | None = None) -> str:
        """Create a batch, or set an existing one's expected document count. Returns its id.

        Raises BatchNotFound if the batch has documents, of which the reader may read none.
        """
        made = batch_id or f"batch-{uuid.uuid4().hex[:12]}"
        make(self._database, made)
        self.report(made)
        if expected is not None:
            with self._database.writing() as connection:
                connection.execute(
                    update(schema.batches).where(_B.batch_id == made).values(expected=expected)
                )
        return made

    def exists(self, batch_id: str) -> bool:
        """Whether there is a batch with this id, whoever may read its documents."""
        with self._database.reading() as connection:
            return bool(connection.scalar(_EXISTS, {"of": batch_id}))

    def starting(self, start: str) -> list[str]:
        """Ids that begin with this text, in no order."""
        alike = select(_B.batch_id).where(_B.batch_id.startswith(start, autoescape=True))
        with self._database.reading() as connection:  # SQLite ignores case here
            return [each for each in connection.scalars(alike) if each.startswith(start)]

    def report(self, batch_id: str) -> BatchReport:
        """The progress of a batch. Raises BatchNotFound if the batch does not exist."""
        now = time.time()
        with self._database.reading() as connection:
            batch = connection.execute(
                select(schema.batches).where(_B.batch_id == batch_id)
            ).one_or_none()
            if batch is None:
                raise _missing(batch_id)
            state, readable = _state(now), of_readable(_I.document_id, self._reader)
            rows = connection.execute(
                select(
                    state.label("state"),
                    func.count().label("documents"),
                    func.sum(case((_I.fresh, 0), else_=1)).label("unchanged"),
                    func.min(_I.submitted_at).label("first_at"),
                    func.max(case((_I.fresh, _V.finished_at))).label("last_at"),
                )
                .select_from(_JOINED)
                .where(_I.batch_id == batch_id, readable)
                .group_by(state)
            ).all()
            if not rows and self._reader is not None:
                self._check_empty(connection, batch_id)
            first_at = min((row.first_at for row in rows), default=None)
            since = max(first_at or now, now - WINDOW_SECONDS)
            lately = connection.execute(_finished(batch_id, since).where(readable)).one()
        return _report(batch, rows, lately, since, now)

    def items(
        self,
        batch_id: str,
        *,
        state: str | None = None,
        after: tuple[str, int] = ("", 0),
        limit: int = 100,
    ) -> list[BatchItem]:
        """The items of the batch in order of ids, starting after this id and version."""
        shown = _state(time.time())
        after_id, after_version = after
        query = (
            select(
                _I.document_id,
                _I.version,
                _I.fresh,
                shown.label("state"),
                _I.collection,
                func.coalesce(_D.name, "").label("name"),
                _V.error,
            )
            .select_from(_JOINED)
            .where(_I.batch_id == batch_id, of_readable(_I.document_id, self._reader))
            .where(
                (_I.document_id > after_id)
                | ((_I.document_id == after_id) & (_I.version > after_version))
            )
            .order_by(_I.document_id, _I.version)
            .limit(limit)
        )
        if state is not None:
            query = query.where(shown == state)
        with self._database.reading() as connection:
            return [_item(row) for row in connection.execute(query)]

    def scopes(self, batch_id: str) -> set[tuple[str, str]]:
        """The collections and tenants of the batch's documents; an empty batch has none.

        Of a document whose rows are gone the collection is known, and the tenant counts as "".
        """
        query = select(_I.collection, func.coalesce(_D.tenant, "").label("tenant")).distinct()
        joined = schema.batch_items.outerjoin(schema.documents, _D.document_id == _I.document_id)
        with self._database.reading() as connection:
            rows = connection.execute(query.select_from(joined).where(_I.batch_id == batch_id))
            return {(row.collection, row.tenant) for row in rows}

    def _check_empty(self, connection: Connection, batch_id: str) -> None:
        """Raise BatchNotFound if the batch has documents, of which the reader may read none."""
        if connection.scalar(select(exists().where(_I.batch_id == batch_id))):
            raise _missing(batch_id)

    def recent(
        self, collection: str, since: float, tenants: Collection[str] | None = None
    ) -> list[str]:
        """Ids of batches with a submission to the collection since that time, newest first.

        With `tenants`, those with a document of one of these alone.
        """
        newest = func.max(_I.submitted_at)
        query = (
            select(_I.batch_id)
            .where(_I.collection == collection, _I.submitted_at > since)
            .where(of_readable(_I.document_id, self._reader))
            .group_by(_I.batch_id)
            .order_by(newest.desc())
            .limit(MOST_RECENT)
        )
        if tenants is not None:
            mine = select(_D.document_id).where(_D.tenant.in_(tenants))
            query = query.where(_I.document_id.in_(mine))
        with self._database.reading() as connection:
            return list(connection.scalars(query))

    def trim(self, before: float) -> None:
        """Delete batches without a submission since that time."""
        used = exists().where(_I.batch_id == _B.batch_id, _I.submitted_at >= before)
        old = select(_B.batch_id).where(_B.created_at < before, ~used)
        with self._database.reading() as connection:
            ids = list(connection.scalars(old))
        for batch_id in ids:
            with self._database.writing() as connection:
                connection.execute(delete(schema.batch_items).where(_I.batch_id == batch_id))
                connection.execute(delete(schema.batches).where(_B.batch_id == batch_id))


def _missing(batch_id: str) -> BatchNotFound:
    return BatchNotFound(f"batch {batch_id!r} does not exist")


def make(database: Database, batch_id: str) -> None:
    """Create the batch if it is missing, in a separate transaction.

    So a submission that has locked its document never waits for another that creates the batch.
    """
    with database.reading() as connection:
        if connection.scalar(_EXISTS, {"of": batch_id}):
            return
    row = {"batch_id": batch_id, "created_at": time.time()}
    with suppress(IntegrityError), database.writing() as connection:  # another process was first
        connection.execute(insert(schema.batches).values(row))


def add(
    connection: Connection, batch_id: str, collection: str, accepted: Accepted, now: float
) -> None:
    """Record a submission to an existing batch, within the transaction of the submission."""
    if not batch_id:
        return
    key = {
        "batch_id": batch_id,
        "document_id": accepted.document_id,
        "version": accepted.version,
    }
    if not connection.scalar(_IN_BATCH, key):
        row = {"collection": collection, "fresh": accepted.fresh, "submitted_at": now}
        connection.execute(_ADD_ITEM, key | row)


def add_within(
    connection: Connection, parent: Claim | None, collection: str, accepted: Accepted, now: float
) -> None:
    """Record a child document in the batches of the document that contains it."""
    if parent is None:
        return
    of_parent = select(_I.batch_id).where(
        _I.document_id == parent.document_id, _I.version == parent.version
    )
    for batch_id in connection.scalars(of_parent).all():
        add(connection, batch_id, collection, accepted, now)


def _state(now: float) -> ColumnElement[str]:
    """The state of an item, as `DocumentRecord.state` of a document, computed by the database."""
    return case(
        (_D.document_id.is_(None) | _D.deleted_at.is_not(None), "deleted"),
        (_V.state != "queued", _V.state),
        (exists().where(_RUNNING, _S.lease_until > now), "working"),
        (exists().where(_RUNNING), "stalled"),
        else_="waiting",
    )


def _finished(batch_id: str, since: float) -> Any:
    """Query the number of documents and chunks that went live since then, and the first time."""
    upsert = and_(_S.document_id == _I.document_id, _S.version == _I.version, _S.step == "upsert")
    chunks = type_coerce(_S.counts["chunks"].as_integer(), Integer)
    return (
        select(
            func.count().label("documents"),
            func.min(_V.finished_at).label("first_at"),
            func.coalesce(func.sum(chunks), 0).label("chunks"),
        )
        .select_from(schema.batch_items.join(schema.versions, _OF_ITEM))
        .join(schema.steps, upsert)
        .where(_I.batch_id == batch_id, _I.fresh, _V.state == "live")
        .where(_V.finished_at > since)
    )


def _report(batch: Any, rows: Sequence[Any], lately: Any, since: float, now: float) -> BatchReport:
    states = {row.state: row.documents for row in rows}
    submitted = sum(states.values())
    underway = sum(states.get(state, 0) for state in _UNDERWAY)
    left = max(batch.expected or 0, submitted) - (submitted - underway)
    first_at = min((row.first_at for row in rows), default=None)
    last_at = max((row.last_at for row in rows if row.last_at is not None), default=first_at)
    a_minute = 60 / (now - since) if lately.documents else None
    return BatchReport(
        batch_id=batch.batch_id,
        created_at=batch.created_at,
        started_at=first_at,
        expected=batch.expected,
        submitted=submitted,
        unchanged=sum(row.unchanged for row in rows),
        states=states,
        left=left,
        seconds=None if first_at is None else (now if left else last_at or now) - first_at,
        documents_per_minute=a_minute and lately.documents * a_minute,
        chunks_per_minute=a_minute and lately.chunks * a_minute,
        seconds_left=_seconds_left(left, lately, now) if left else None,
    )


def _seconds_left(left: int, lately: Any, now: float) -> float | None:
    """Estimate the time from the pace since the first document of the period went live.

    Before that moment all documents were in earlier steps. None without enough live documents.
    """
    if lately.documents < ENOUGH_DOCUMENTS or now - lately.first_at < ENOUGH_SECONDS:
        return None
    return float(left * (now - lately.first_at) / (lately.documents - 1))


def _item(row: Any) -> BatchItem:
    return BatchItem(
        document_id=row.document_id,
        version=row.version,
        collection=row.collection,
        name=row.name,
        state=row.state,
        fresh=row.fresh,
        failure=Failure(**row.error) if row.error else None,
    )
