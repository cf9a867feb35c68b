"""Takes the lease on a version's step, within a transaction."""

from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, select

from callslip.stores.ledger.base import schema
from callslip.stores.ledger.base.fair_queue import SENT, set_turn
from callslip.stores.ledger.base.locks import lock_document, steps_of
from callslip.stores.ledger.base.records import STEPS, Claim, Refusal, Step
from callslip.stores.ledger.base.rows import version_record
from callslip.stores.ledger.collections.moves import paused_until
from callslip.stores.ledger.documents.progress import put_off, set_aside_crashed, set_step
from callslip.stores.ledger.outbox import events

_V = schema.versions.c

_VERSION = select(schema.versions).where(
    _V.document_id == bindparam("document_id"), _V.version == bindparam("version")
)


@dataclass(frozen=True)
class Taking:
    """What all claims of a transaction have in common; `now` is in UTC seconds since 1970."""

    step: Step
    worker: str
    lease_seconds: float
    max_crashes: int
    now: float


def claimed(
    connection: Connection, document_id: str, version: int, taking: Taking
) -> Claim | Refusal:
    """Take the lease on a version's step within a transaction, or return the reason why not."""
    step, now = taking.step, taking.now
    document = lock_document(connection, document_id)
    current = connection.execute(
        _VERSION, {"document_id": document_id, "version": version}
    ).one_or_none()
    if document is None or current is None:
        return Refusal("gone")
    rows = {row.step: row for row in steps_of(connection, document_id, version)}
    row = rows[step]
    if row.state == "done":
        return Refusal("done")
    if current.state != "queued":
        return Refusal("gone")
    if any(rows[earlier].state != "done" for earlier in STEPS[: STEPS.index(step)]):
        return Refusal("leased")
    if row.state == "running" and row.lease_until > now:
        return Refusal("leased")
    if row.retry_at is not None and row.retry_at > now:
        return Refusal("leased")
    until = paused_until(connection, document.collection) if step == "upsert" else 0.0
    if until > now:
        put_off(connection, document_id, version, document.collection, now)
        return Refusal("leased")
    crashes = row.crashes + (row.state == "running")
    if crashes >= taking.max_crashes:
        set_aside_crashed(connection, document_id, version, step, crashes)
        return Refusal("gone")
    if current.turn != SENT:
        set_turn(connection, document_id, version, SENT)
    set_step(
        connection,
        document_id,
        version,
        step,
        state="running",
        attempts=row.attempts + 1,
        crashes=crashes,
        worker=taking.worker,
        lease_until=now + taking.lease_seconds,
        retry_at=None,
        started_at=now,
        finished_at=None,
    )
    attempt = {"attempt": row.attempts + 1}
    events.add(connection, "step.started", document_id, version, now, step=step, data=attempt)
    return Claim(
        document_id,
        version,
        step,
        token=row.attempts + 1,
        lease_seconds=taking.lease_seconds,
        record=version_record(current, document),
        artifacts={name: r.artifact for name, r in rows.items() if r.artifact is not None},
        document_created_at=document.created_at,
        audience=document.audience,
    )
