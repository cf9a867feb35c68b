"""What was submitted together: how much of it is done, how fast it goes, what failed."""

import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    and_,
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
from stores.ledger import schema
from stores.ledger.database import Database
from stores.ledger.records import Accepted, BatchItem, BatchReport, Claim, Failure

_B, _I = schema.batches.c, schema.batch_items.c
_D, _V, _S = schema.documents.c, schema.versions.c, schema.steps.c

WINDOW_SECONDS = 300.0
"""The last minutes, over which the rate is told."""

ENOUGH_SECONDS, ENOUGH_DOCUMENTS = 10.0, 5
"""Before these have passed and are live, nobody can say how long the rest takes."""

_UNDERWAY = ("waiting", "working", "stalled")

_OF_ITEM = and_(_V.document_id == _I.document_id, _V.version == _I.version)
_RUNNING = and_(_S.document_id == _I.document_id, _S.version == _I.version, _S.state == "running")
_JOINED = schema.batch_items.outerjoin(schema.versions, _OF_ITEM).outerjoin(
    schema.documents, _D.document_id == _I.document_id
)


class Batches:
    """Making batches and saying how far they are."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(self, batch_id: str | None = None, expected: int | None = None) -> str:
        """Make a batch, or say of one that is there how many documents it will have; its id."""
        made = batch_id or f"batch-{uuid.uuid4().hex[:12]}"
        make(self._database, made)
        if expected is not None:
            with self._database.writing() as connection:
                connection.execute(
                    update(schema.batches).where(_B.batch_id == made).values(expected=expected)
                )
        return made

    def report(self, batch_id: str) -> BatchReport:
        """How far a batch is; BatchNotFound where there is none."""
        now = time.time()
        with self._database.reading() as connection:
            batch = connection.execute(
                select(schema.batches).where(_B.batch_id == batch_id)
            ).one_or_none()
            if batch is None:
                raise BatchNotFound(f"batch {batch_id!r} does not exist")
            state = _state(now)
            rows = connection.execute(
                select(
                    state.label("state"),
                    func.count().label("documents"),
                    func.sum(case((_I.fresh, 0), else_=1)).label("unchanged"),
                    func.min(_I.submitted_at).label("first_at"),
                    func.max(case((_I.fresh, _V.finished_at))).label("last_at"),
                )
                .select_from(_JOINED)
                .where(_I.batch_id == batch_id)
                .group_by(state)
            ).all()
            first_at = min((row.first_at for row in rows), default=None)
            since = max(first_at or now, now - WINDOW_SECONDS)
            lately = connection.execute(_finished(batch_id, since)).one()
        return _report(batch, rows, lately, since, now)

    def items(
        self,
        batch_id: str,
        *,
        state: str | None = None,
        after: tuple[str, int] = ("", 0),
        limit: int = 100,
    ) -> list[BatchItem]:
        """What was submitted, in order of ids, from the one after this id and version."""
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
            .where(_I.batch_id == batch_id)
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

    def recent(self, collection: str, since: float, limit: int = 3) -> list[str]:
        """Ids of batches of which something went to the collection since then, newest first."""
        newest = func.max(_I.submitted_at)
        query = (
            select(_I.batch_id)
            .where(_I.collection == collection, _I.submitted_at > since)
            .group_by(_I.batch_id)
            .order_by(newest.desc())
            .limit(limit)
        )
        with self._database.reading() as connection:
            return list(connection.scalars(query))

    def trim(self, before: float) -> None:
        """Forget batches to which nothing was submitted since then."""
        used = exists().where(_I.batch_id == _B.batch_id, _I.submitted_at >= before)
        old = select(_B.batch_id).where(_B.created_at < before, ~used)
        with self._database.reading() as connection:
            ids = list(connection.scalars(old))
        for batch_id in ids:
            with self._database.writing() as connection:
                connection.execute(delete(schema.batch_items).where(_I.batch_id == batch_id))
                connection.execute(delete(schema.batches).where(_B.batch_id == batch_id))


def make(database: Database, batch_id: str) -> None:
    """Make a batch where there is none of this id, in a transaction of its own.

    So no submission ever waits, with its document locked, for another that makes the same batch.
    """
    with database.reading() as connection:
        if connection.scalar(select(exists().where(_B.batch_id == batch_id))):
            return
    row = {"batch_id": batch_id, "created_at": time.time()}
    with suppress(IntegrityError), database.writing() as connection:  # another has just made it
        connection.execute(insert(schema.batches).values(row))


def add(
    connection: Connection, batch_id: str, collection: str, accepted: Accepted, now: float
) -> None:
    """Note a submission within its transaction, of a batch that was made before it."""
    if not batch_id:
        return
    key = {
        "batch_id": batch_id,
        "document_id": accepted.document_id,
        "version": accepted.version,
    }
    known = exists().where(*(_I[name] == value for name, value in key.items()))
    if not connection.scalar(select(known)):
        row = {"collection": collection, "fresh": accepted.fresh, "submitted_at": now}
        connection.execute(insert(schema.batch_items).values(**key, **row))


def add_within(
    connection: Connection, parent: Claim | None, collection: str, accepted: Accepted, now: float
) -> None:
    """Note what came within another document as of the batches that this one is of."""
    if parent is None:
        return
    of_parent = select(_I.batch_id).where(
        _I.document_id == parent.document_id, _I.version == parent.version
    )
    for batch_id in connection.scalars(of_parent).all():
        add(connection, batch_id, collection, accepted, now)


def _state(now: float) -> ColumnElement[str]:
    """Of an item: what `DocumentRecord.state` says of a document, by the database."""
    return case(
        (_D.document_id.is_(None) | _D.deleted_at.is_not(None), "deleted"),
        (_V.state != "queued", _V.state),
        (exists().where(_RUNNING, _S.lease_until > now), "working"),
        (exists().where(_RUNNING), "stalled"),
        else_="waiting",
    )


def _finished(batch_id: str, since: float) -> Any:
    """How many documents, and chunks of them, went live since then, and when the first did."""
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
    """At the pace since the first went live: before that, all of them were only on their way."""
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
