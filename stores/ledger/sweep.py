"""What the periodic sweep must know: what has no live lease, what is left to remove."""

import math
import time

from sqlalchemy import Connection, exists, literal, or_, select, update

from stores.ledger import schema
from stores.ledger.database import Database
from stores.ledger.leases import set_aside_crashed
from stores.ledger.locks import lock_document, steps_of
from stores.ledger.records import Nudge, Step
from stores.ledger.turns import RESTING, SENT, WAITING, Turns, set_turn

_D, _V, _S, _C = schema.documents.c, schema.versions.c, schema.steps.c, schema.chunks.c

PATIENCE_SECONDS = 900.0
"""A version unheard of this long is sent again even while queues are full; doubled each time."""

MOST_DOUBLINGS = 6
"""So a version is sent again every 16 hours at the least."""

SENT_PER_TRANSACTION = 100
"""Workers wait for SQLite's write lock meanwhile."""


class Sweep:
    """Finding what nobody is working on."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._turns = Turns(database)

    def stuck(
        self,
        *,
        idle: bool,
        resend_seconds: float,
        max_crashes: int,
        window: float = math.inf,
        limit: int = 1000,
    ) -> list[Nudge]:
        """Versions that nobody works on and no message is on its way for; they count as sent now.

        Those are: a lease ran out; when the queues are empty (`idle`), whatever was sent
        `resend_seconds` ago; while they are not, and waiting in them is normal, only what was not
        heard of for PATIENCE_SECONDS, doubled with each sending; and, up to `window`, what waits
        for its turn (`Turns`), a retry that is due with the others. A version whose leases ran out
        `max_crashes` times is set aside instead. What was found without a lock is looked at again
        under one.
        """
        now = time.time()
        mine = (_S.document_id == _V.document_id) & (_S.version == _V.version)
        held = exists().where(mine, _S.state == "running", _S.lease_until > now)
        resting = exists().where(mine, _S.state == "pending", _S.retry_at > now)
        dropped = exists().where(mine, _S.state == "running", _S.lease_until <= now)
        due = exists().where(mine, _S.state == "pending", _S.retry_at <= now)
        patience = PATIENCE_SECONDS * literal(1).bitwise_lshift(_V.nudges)
        query = (
            select(_V.document_id, _V.version, _V.turn, _V.nudges, dropped.label("heard"))
            .join(schema.documents, _D.document_id == _V.document_id)
            .where(_V.turn.in_((SENT, RESTING)), _D.deleted_at.is_(None))
            .where(~held, ~resting)
            .where(or_(dropped, due, _V.nudged_at < now - (resend_seconds if idle else patience)))
            .order_by(_V.nudged_at)
            .limit(limit)
        )
        with self._database.reading() as connection:
            rows = connection.execute(query).all()
        found = []
        for start in range(0, len(rows), SENT_PER_TRANSACTION):
            with self._database.writing() as connection:
                for row in rows[start : start + SENT_PER_TRANSACTION]:
                    step = _next_step(connection, row.document_id, row.version, now, max_crashes)
                    if step is None:
                        continue
                    item = Nudge(row.document_id, row.version, step)
                    if row.turn == RESTING:
                        set_turn(connection, item.document_id, item.version, WAITING)
                        continue
                    found.append(item)
                    nudges = 0 if row.heard else min(row.nudges + 1, MOST_DOUBLINGS)
                    sent = {"nudged_at": now, "nudges": nudges}
                    set_turn(connection, item.document_id, item.version, SENT, **sent)
        return [*found, *self._turns.take_all(window)]

    def unremoved(self, *, resend_seconds: float, limit: int = 1000) -> list[str]:
        """Deleted documents of which something may be left; they count as sent now."""
        now = time.time()
        query = (
            select(_D.document_id)
            .where(_D.deleted_at.is_not(None), _D.removed_at.is_(None))
            .where(_D.nudged_at < now - resend_seconds)
            .order_by(_D.nudged_at)
            .limit(limit)
        )
        with self._database.reading() as connection:
            ids = list(connection.scalars(query))
        if ids:
            with self._database.writing() as connection:
                connection.execute(
                    update(schema.documents).where(_D.document_id.in_(ids)).values(nudged_at=now)
                )
        return ids

    def unpruned(self, limit: int = 1000) -> list[str]:
        """Live documents with chunks of older versions that no version needs any more."""
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
        """Whether a live lease is held on any step of the document."""
        with self._database.reading() as connection:
            return bool(
                connection.scalar(
                    select(
                        exists().where(
                            _S.document_id == document_id,
                            _S.state == "running",
                            _S.lease_until > time.time(),
                        )
                    )
                )
            )


def _next_step(
    connection: Connection, document_id: str, version: int, now: float, max_crashes: int
) -> Step | None:
    """Make the first step that is not done ready to be claimed; None where it is not to be."""
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
