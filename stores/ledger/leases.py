"""Claiming, keeping and finishing the steps of a version: leases with fencing tokens.

A step is claimed by raising its attempt count, the fencing token, *before* its work starts.
Whoever comes late finds it done or leased; whoever lost the lease cannot finish it any more.
"""

import time
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, bindparam, exists, select, update

from callslip.errors import CallslipError, LeaseLost, TransientError, WorkerLost
from stores.ledger import events, schema
from stores.ledger.database import Database
from stores.ledger.family import hide_vanished
from stores.ledger.lease_keeper import LeaseKeeper
from stores.ledger.locks import lock_document, steps_of
from stores.ledger.moves import paused_until
from stores.ledger.records import STEPS, Claim, Failure, Refusal, Step
from stores.ledger.rows import version_record
from stores.ledger.turns import RESTING, SENT, queue, set_turn

_D, _V, _S, _C = schema.documents.c, schema.versions.c, schema.steps.c, schema.chunks.c

_VERSION = select(schema.versions).where(
    _V.document_id == bindparam("document_id"), _V.version == bindparam("version")
)
_HELD = (
    select(schema.steps)
    .join(schema.versions, (_V.document_id == _S.document_id) & (_V.version == _S.version))
    .where(_S.document_id == bindparam("document_id"), _S.version == bindparam("version"))
    .where(_S.step == bindparam("step"), _S.attempts == bindparam("token"))
    .where(_S.state == "running", _V.state == "queued")
)
_SET_STEP = update(schema.steps).where(
    _S.document_id == bindparam("of_document"),
    _S.version == bindparam("of_version"),
    _S.step == bindparam("of_step"),
)
_SET_VERSION = update(schema.versions).where(
    _V.document_id == bindparam("of_document"), _V.version == bindparam("of_version")
)
_SUPERSEDE = (
    update(schema.versions)
    .where(_V.document_id == bindparam("of_document"), _V.state == "live")
    .values(state="superseded", superseded_by=bindparam("by"))
)
_SET_DOCUMENT = update(schema.documents).where(_D.document_id == bindparam("of_document"))
_OPEN_CHUNKS = (
    select(_C.chunk_id, _C.first_version)
    .where(_C.document_id == bindparam("document_id"), _C.last_version.is_(None))
    .order_by(_C.first_version)
)
_END_CHUNK = update(schema.chunks).where(
    _C.chunk_id == bindparam("of_chunk"), _C.first_version == bindparam("since")
)


PAUSE_SECONDS = 1.0
"""After which an upsert is tried again that found its collection being moved."""


class Leases:
    """The right to work, and the record of what came of it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def claim(
        self,
        document_id: str,
        version: int,
        step: Step,
        *,
        worker: str,
        lease_seconds: float,
        max_crashes: int,
    ) -> Claim | Refusal:
        """Take the lease on a step, or say why not.

        A lease that ran out means that its worker died: after `max_crashes` of those the document
        is set aside as failed (WorkerLost).
        """
        now = time.time()
        with self._database.writing() as connection:
            document = lock_document(connection, document_id)
            found = connection.execute(
                _VERSION, {"document_id": document_id, "version": version}
            ).one_or_none()
            if document is None or found is None:
                return Refusal("gone")
            rows = {row.step: row for row in steps_of(connection, document_id, version)}
            row = rows[step]
            if row.state == "done":
                return Refusal("done")
            if found.state != "queued":
                return Refusal("gone")
            if any(rows[earlier].state != "done" for earlier in STEPS[: STEPS.index(step)]):
                return Refusal("leased")
            if row.state == "running" and row.lease_until > now:
                return Refusal("leased")
            if row.retry_at is not None and row.retry_at > now:
                return Refusal("leased")
            until = paused_until(connection, document.collection) if step == "upsert" else 0.0
            if until > now:
                _put_off(connection, document_id, version, document.collection, now)
                return Refusal("leased")
            crashes = row.crashes + (row.state == "running")
            if crashes >= max_crashes:
                set_aside_crashed(connection, document_id, version, step, crashes)
                return Refusal("gone")
            if found.turn != SENT:
                set_turn(connection, document_id, version, SENT)
            _set_step(
                connection,
                document_id,
                version,
                step,
                state="running",
                attempts=row.attempts + 1,
                crashes=crashes,
                worker=worker,
                lease_until=now + lease_seconds,
                retry_at=None,
                started_at=now,
                finished_at=None,
            )
            attempt = {"attempt": row.attempts + 1}
            events.add(
                connection, "step.started", document_id, version, now, step=step, data=attempt
            )
        return Claim(
            document_id,
            version,
            step,
            token=row.attempts + 1,
            lease_seconds=lease_seconds,
            record=version_record(found, document),
            artifacts={name: r.artifact for name, r in rows.items() if r.artifact is not None},
        )

    def renew(self, claim: Claim) -> None:
        """Show a sign of life; LeaseLost when the step is no longer this claim's."""
        with self._database.writing() as connection:
            held(connection, claim)
            _set_step(
                connection,
                claim.document_id,
                claim.version,
                claim.step,
                lease_until=time.time() + claim.lease_seconds,
            )

    def kept(self, claim: Claim) -> LeaseKeeper:
        """Renews the claim while a block runs."""
        what = f"step {claim.step!r} of document {claim.document_id}"
        return LeaseKeeper(lambda: self.renew(claim), claim.lease_seconds, what)

    def finish(self, claim: Claim, artifact: str | None, counts: dict[str, int]) -> None:
        """Record a step's result; LeaseLost when the step is no longer this claim's."""
        with self._database.writing() as connection:
            held(connection, claim)
            _done(connection, claim, artifact, counts)

    def go_live(self, claim: Claim, chunk_ids: Sequence[str], counts: dict[str, int]) -> None:
        """Finish the last step and make its version the live one, at once and whole.

        Chunks of older versions that this one no longer has, or has elsewhere, end with the version
        before it; documents that came within older versions alone are deleted.
        """
        now = time.time()
        with self._database.writing() as connection:
            held(connection, claim)
            _done(connection, claim, None, counts)
            kept = set(chunk_ids)
            rows = connection.execute(_OPEN_CHUNKS, {"document_id": claim.document_id}).all()
            since = {r.chunk_id: r.first_version for r in rows if r.first_version <= claim.version}
            ended = [
                {"of_chunk": row.chunk_id, "since": row.first_version}
                for row in rows
                if row.chunk_id not in kept or row.first_version < since.get(row.chunk_id, 0)
            ]
            if ended:
                last = {"last_version": claim.version - 1}
                connection.execute(_END_CHUNK, [chunk | last for chunk in ended])
            document = {"of_document": claim.document_id}
            events.add_superseded(connection, claim.document_id, "live", now)
            connection.execute(_SUPERSEDE, document | {"by": claim.version})
            _set_version(
                connection,
                claim.document_id,
                claim.version,
                state="live",
                turn=None,
                finished_at=now,
            )
            connection.execute(_SET_DOCUMENT, document | {"live_version": claim.version})
            events.add(
                connection, "document.live", claim.document_id, claim.version, now, data=counts
            )
            hide_vanished(connection, claim, now)

    def release(self, claim: Claim, error: CallslipError, *, wait: float, give_up: float) -> None:
        """Put a step back after a transient error, not to be tried for `wait` seconds.

        When it has been failing for `give_up` seconds, the version fails for good.
        """
        now = time.time()
        with self._database.writing() as connection:
            row = held(connection, claim)
            since = row.failing_since or now
            failure = Failure.of(error, claim.step)
            if now + wait - since > give_up:
                _fail(connection, claim.document_id, claim.version, claim.step, failure)
                return
            set_turn(connection, claim.document_id, claim.version, RESTING)
            _set_step(
                connection,
                claim.document_id,
                claim.version,
                claim.step,
                state="pending",
                lease_until=None,
                retry_at=now + wait,
                failing_since=since,
                error=failure.as_json(),
            )
            events.add(
                connection,
                "step.retrying",
                claim.document_id,
                claim.version,
                now,
                step=claim.step,
                data=failure.as_json() | {"wait_seconds": round(wait, 1)},
            )

    def fail(self, claim: Claim, error: CallslipError) -> None:
        """Set the version aside for good, with the reason."""
        with self._database.writing() as connection:
            held(connection, claim)
            _fail(
                connection,
                claim.document_id,
                claim.version,
                claim.step,
                Failure.of(error, claim.step),
            )

    def drop(self, claim: Claim) -> None:
        """Give a lost lease back where nobody took it over, so that no removal waits for it."""
        with self._database.writing() as connection:
            connection.execute(
                update(schema.steps)
                .where(_S.document_id == claim.document_id, _S.version == claim.version)
                .where(_S.step == claim.step)
                .where(_S.state == "running", _S.attempts == claim.token)
                .values(state="pending", lease_until=None)
            )

    def reopen(self, document_id: str, version: int, first: Step) -> bool:
        """Let the live version's steps from `first` on be done again; searches see it meanwhile.

        False where it is not the live one, or where a version of the document is on its way: that
        one writes what is missing. The caller sends it, or the sweep does.
        """
        now = time.time()
        with self._database.writing() as connection:
            document = lock_document(connection, document_id)
            if document is None or document.live_version != version:
                return False
            queued = exists().where(_V.document_id == document_id, _V.state == "queued")
            if connection.scalar(select(queued)):
                return False
            queue(connection, document, version, now)
            for step in STEPS[STEPS.index(first) :]:
                _set_step(
                    connection,
                    document_id,
                    version,
                    step,
                    state="pending",
                    crashes=0,
                    lease_until=None,
                    retry_at=None,
                    failing_since=None,
                    error=None,
                )
            events.add(connection, "document.queued", document_id, version, now)
        return True

    def expire_all(self) -> int:
        """End every lease at once, uncounted, for one machine that knows its workers are gone.

        The next sweep sends these versions again.
        """
        running = select(_S.document_id).where(_S.state == "running")
        with self._database.writing() as connection:
            connection.execute(
                update(schema.versions)
                .where(_V.state == "queued", _V.document_id.in_(running))
                .values(nudged_at=0)
            )
            return connection.execute(
                update(schema.steps)
                .where(_S.state == "running")
                .values(state="pending", lease_until=None, retry_at=None)
            ).rowcount


def held(connection: Connection, claim: Claim) -> Row[Any]:
    """The step's row while the claim holds it, until the transaction ends; LeaseLost otherwise."""
    row = None
    if lock_document(connection, claim.document_id) is not None:
        row = connection.execute(
            _HELD,
            {
                "document_id": claim.document_id,
                "version": claim.version,
                "step": claim.step,
                "token": claim.token,
            },
        ).one_or_none()
    if row is None:
        raise LeaseLost(
            f"step {claim.step!r} of document {claim.document_id} is no longer this worker's"
        )
    return row


def set_aside_crashed(
    connection: Connection, document_id: str, version: int, step: Step, crashes: int
) -> None:
    """Fail a version whose worker died each time."""
    lost = WorkerLost(f"the worker died {crashes} times in step {step!r}")
    _fail(connection, document_id, version, step, Failure.of(lost, step), crashes)


def _put_off(
    connection: Connection, document_id: str, version: int, collection: str, now: float
) -> None:
    """The step waits a little, at no cost of a try, while the collection's mover pauses it."""
    moving = TransientError(
        f"collection {collection!r} is being moved to another store",
        hint="Nothing: the document follows in a moment.",
    )
    set_turn(connection, document_id, version, RESTING)
    _set_step(
        connection,
        document_id,
        version,
        "upsert",
        state="pending",
        lease_until=None,
        retry_at=now + PAUSE_SECONDS,
        error=Failure.of(moving, "upsert").as_json(),
    )


def _done(
    connection: Connection, claim: Claim, artifact: str | None, counts: dict[str, int]
) -> None:
    now = time.time()
    _set_step(
        connection,
        claim.document_id,
        claim.version,
        claim.step,
        state="done",
        lease_until=None,
        failing_since=None,
        error=None,
        finished_at=now,
        artifact=artifact,
        counts=counts,
    )
    events.add(
        connection,
        "step.finished",
        claim.document_id,
        claim.version,
        now,
        step=claim.step,
        data=counts,
    )


def _fail(
    connection: Connection,
    document_id: str,
    version: int,
    step: Step,
    failure: Failure,
    crashes: int | None = None,
) -> None:
    now = time.time()
    _set_step(
        connection,
        document_id,
        version,
        step,
        state="failed",
        lease_until=None,
        finished_at=now,
        error=failure.as_json(),
        **({} if crashes is None else {"crashes": crashes}),
    )
    _set_version(
        connection,
        document_id,
        version,
        state="failed",
        turn=None,
        finished_at=now,
        error=failure.as_json(),
    )
    why = failure.as_json()
    events.add(connection, "step.failed", document_id, version, now, step=step, data=why)
    events.add(connection, "document.failed", document_id, version, now, data=why)


def _set_step(
    connection: Connection, document_id: str, version: int, step: Step, **values: Any
) -> None:
    where = {"of_document": document_id, "of_version": version, "of_step": step}
    connection.execute(_SET_STEP, where | values)


def _set_version(connection: Connection, document_id: str, version: int, **values: Any) -> None:
    where = {"of_document": document_id, "of_version": version}
    connection.execute(_SET_VERSION, where | values)
