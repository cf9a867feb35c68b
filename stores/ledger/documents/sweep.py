"""The queries of the periodic sweep: steps without a live lease, and data that is to be removed."""

import math
import time

from sqlalchemy import Connection, case, exists, func, literal, or_, select, update

from callslip.stores.ledger.base import schema
from callslip.stores.ledger.base.database import Database
from callslip.stores.ledger.base.fair_queue import RESTING, SENT, WAITING, FairQueue, set_turn
from callslip.stores.ledger.base.locks import lock_document, steps_of
from callslip.stores.ledger.base.records import Dispatch, Step
from callslip.stores.ledger.documents.progress import set_aside_crashed

_D, _V, _S, _C = schema.documents.c, schema.versions.c, schema.steps.c, schema.chunks.c
_R, _M = schema.sources.c, schema.moves.c

_QUEUED = _V.state == "queued"
"""Every version in a tenant queue is queued; the databases have an index of the state alone, so
that a sweep does not read the versions of years.
"""

PATIENCE_SECONDS = 900.0
"""Seconds after which a sent version without a lease is sent again even if queues are full.

Each further dispatch doubles the time.
"""

MOST_DOUBLINGS = 6
"""The maximum number of doublings: a version is sent again at least every 16 hours."""

MOVE_LEASE_SECONDS = 60.0
"""No lease of a mover is longer."""

LAST_CALL_SECONDS = 120.0
"""Seconds after its lease for which an upsert that nobody gave up may still write.

A request to Chroma lasts 60 s at most; the keywords after it wait 30 s for their lock.
"""

SENT_PER_TRANSACTION = 100
"""Versions that one transaction sends; workers wait for SQLite's write lock in the meantime."""


class Sweep:
    """Finds work that no worker is doing."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._fair_queue = FairQueue(database)

    def stuck(
        self,
        *,
        idle: bool,
        resend_seconds: float,
        max_crashes: int,
        window: float = math.inf,
        limit: int = 1000,
    ) -> list[Dispatch]:
        """Return the versions to send that neither a worker nor a message has; mark them as sent.

        These are versions whose lease expired; when the queues are empty (`idle`), versions that
        were sent `resend_seconds` ago; while the queues are not empty, and waiting in them is
        normal, versions that were sent PATIENCE_SECONDS ago, doubled with each dispatch; and, up to
        `window`, versions that the `FairQueue` sends next, including retries that are due. A
        version whose leases expired `max_crashes` times fails instead. Only versions that the
        `FairQueue` sends share a message. Each version that the query
        returns is checked again under a lock.
        """
        now = time.time()
        mine = (_S.document_id == _V.document_id) & (_S.version == _V.version)
        leased = exists().where(mine, _S.state == "running", _S.lease_until > now)
        resting = exists().where(mine, _S.state == "pending", _S.retry_at > now)
        dropped = exists().where(mine, _S.state == "running", _S.lease_until <= now)
        due = exists().where(mine, _S.state == "pending", _S.retry_at <= now)
        patience = PATIENCE_SECONDS * literal(1).bitwise_lshift(_V.dispatches)
        query = (
            select(
                _V.document_id,
                _V.version,
                _V.turn,
                _V.dispatches.label("dispatches"),
                dropped.label("expired"),
            )
            .join(schema.documents, _D.document_id == _V.document_id)
            .where(_QUEUED, _V.turn.in_((SENT, RESTING)), _D.deleted_at.is_(None))
            .where(~leased, ~resting)
            .where(
                or_(dropped, due, _V.dispatched_at < now - (resend_seconds if idle else patience))
            )
            .order_by(_V.dispatched_at)
            .limit(limit)
        )
        with self._database.reading() as connection:
            rows = connection.execute(query).all()
        dispatches = []
        for start in range(0, len(rows), SENT_PER_TRANSACTION):
            with self._database.writing() as connection:
                for number, row in enumerate(rows[start : start + SENT_PER_TRANSACTION], start):
                    step = _next_step(connection, row.document_id, row.version, now, max_crashes)
                    if step is None:
                        continue
                    dispatch = Dispatch(row.document_id, row.version, step)
                    if row.turn == RESTING:
                        set_turn(connection, row.document_id, row.version, WAITING)
                        continue
                    dispatches.append(dispatch)
                    count = 0 if row.expired else min(row.dispatches + 1, MOST_DOUBLINGS)
                    # Messages are counted by their time of dispatch.
                    sent = {"dispatched_at": now + number * 1e-6, "dispatches": count}
                    set_turn(connection, row.document_id, row.version, SENT, **sent)
        return [*dispatches, *self._fair_queue.take_all(window)]

    def bound_times(self, *, lease_seconds: float, wait_seconds: float) -> int:
        """Bring back times that lie further ahead than any does: the clock was set back.

        A lease of a step or source lasts `lease_seconds`, a retry waits `wait_seconds` at most, and
        a source is due after its interval. A lease that would last twice as long begins anew, which
        its worker, if it lives, does itself soon. Returns the number of steps.
        """
        now = time.time()
        long_lease = _S.lease_until > now + 2 * lease_seconds
        long_wait = _S.retry_at > now + 2 * wait_seconds
        query = select(_S.document_id, _S.version, _S.step).where(or_(long_lease, long_wait))
        its = (_V.document_id == _S.document_id) & (_V.version == _S.version)
        queued = _QUEUED & _V.turn.in_((SENT, RESTING))
        unremoved = select(_D.document_id).where(
            _D.deleted_at.is_not(None), _D.removed_at.is_(None)
        )
        with self._database.reading() as connection:
            rows = [
                *connection.execute(query.join(schema.versions, its).where(queued)),
                *connection.execute(query.where(_S.document_id.in_(unremoved))),
            ]
            ahead = connection.scalar(select(exists().where(queued, _V.dispatched_at > now)))
        if rows or ahead:
            with self._database.writing() as connection:
                for row in rows:
                    step = update(schema.steps).where(
                        _S.document_id == row.document_id,
                        _S.version == row.version,
                        _S.step == row.step,
                    )
                    connection.execute(
                        step.where(long_lease).values(lease_until=now + lease_seconds)
                    )
                    connection.execute(step.where(long_wait).values(retry_at=now))
                sent = update(schema.versions).where(queued, _V.dispatched_at > now)
                connection.execute(sent.values(dispatched_at=now))
        self._bound_sources(now, lease_seconds)
        self._bound_moves(now)
        return len(rows)

    def _bound_sources(self, now: float, lease_seconds: float) -> None:
        """As `bound_times`; a run keeps the order of its begin and of a later request."""
        long_lease = _R.lease_until > now + 2 * lease_seconds
        sent = _R.dispatched_at > now
        latest = case((_R.due_at > _R.began_at, _R.due_at), else_=_R.began_at)  # null between runs
        next_run = now + func.coalesce(_R.every_seconds, 0.0)
        long_wait = _R.began_at.is_(None) & (_R.due_at > next_run)
        ahead = select(exists().where(or_(long_lease, sent, latest > now, long_wait)))
        with self._database.reading() as connection:
            if not connection.scalar(ahead):
                return
        source = update(schema.sources)
        with self._database.writing() as connection:
            connection.execute(source.where(long_lease).values(lease_until=now + lease_seconds))
            connection.execute(source.where(sent).values(dispatched_at=now))
            connection.execute(
                source.where(latest > now).values(
                    due_at=now - (latest - _R.due_at), began_at=now - (latest - _R.began_at)
                )
            )
            connection.execute(source.where(long_wait).values(due_at=next_run))

    def _bound_moves(self, now: float) -> None:
        """As `bound_times`: a mover that was killed pauses its collection no longer."""
        long_lease = _M.lease_until > now + 2 * MOVE_LEASE_SECONDS
        with self._database.reading() as connection:
            if not connection.scalar(select(exists().where(long_lease))):
                return
        with self._database.writing() as connection:
            connection.execute(
                update(schema.moves).where(long_lease).values(lease_until=now + MOVE_LEASE_SECONDS)
            )

    def unremoved(self, *, resend_seconds: float, limit: int = 1000) -> list[str]:
        """Deleted documents whose data may not all be removed; marks them as sent now."""
        now = time.time()
        query = (
            select(_D.document_id)
            .where(_D.deleted_at.is_not(None), _D.removed_at.is_(None))
            .where(_D.dispatched_at < now - resend_seconds)
            .order_by(_D.dispatched_at)
            .limit(limit)
        )
        with self._database.reading() as connection:
            ids = list(connection.scalars(query))
        if ids:
            with self._database.writing() as connection:
                connection.execute(
                    update(schema.documents)
                    .where(_D.document_id.in_(ids))
                    .values(dispatched_at=now)
                )
        return ids

    def deleted(self, collection: str, limit: int) -> list[str]:
        """Documents of a collection that are deleted, but not removed."""
        query = (
            select(_D.document_id)
            .where(_D.collection == collection)
            .where(_D.deleted_at.is_not(None), _D.removed_at.is_(None))
            .order_by(_D.dispatched_at)
            .limit(limit)
        )
        with self._database.reading() as connection:
            return list(connection.scalars(query))

    def unpruned(self, limit: int = 1000) -> list[str]:
        """Live documents with chunks that only older versions have."""
        with self._database.reading() as connection:
            return list(
                connection.scalars(
                    select(_C.document_id)
                    .distinct()
                    .join(schema.documents, _D.document_id == _C.document_id)
                    .where(_D.deleted_at.is_(None), _C.last_version < _D.live_version)
                    .limit(limit)
                )
            )

    def busy(self, document_id: str) -> bool:
        """Whether a worker may still write what belongs to the deleted document.

        A step has a live lease, or one of an upsert that ended less than LAST_CALL_SECONDS ago. A
        worker that lives gives up a lost lease as soon as its last call ends.
        """
        now = time.time()
        writing = (_S.step == "upsert") & (_S.lease_until > now - LAST_CALL_SECONDS)
        running = (_S.document_id == document_id) & (_S.state == "running")
        leased = exists().where(running, or_(_S.lease_until > now, writing))
        with self._database.reading() as connection:
            return bool(connection.scalar(select(leased)))


def _next_step(
    connection: Connection, document_id: str, version: int, now: float, max_crashes: int
) -> Step | None:
    """Make the first step that is not done claimable, and return it; None if it must wait."""
    if lock_document(connection, document_id, skip_locked=True) is None:
        return None
    state = connection.scalar(
        select(_V.state).where(_V.document_id == document_id, _V.version == version)
    )
    if state != "queued":
        return None
    row = next(row for row in steps_of(connection, document_id, version) if row.state != "done")
    if (row.lease_until or 0) > now or (row.retry_at or 0) > now:
        return None
    crashes = row.crashes + (row.state == "running")
    if crashes >= max_crashes:
        set_aside_crashed(connection, document_id, version, row.step, crashes)
        return None
    connection.execute(
        update(schema.steps)
        .where(_S.document_id == document_id, _S.version == version, _S.step == row.step)
        .values(state="pending", crashes=crashes, lease_until=None, retry_at=None)
    )
    step: Step = row.step
    return step
