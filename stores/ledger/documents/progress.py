"""Changes of a version's steps within a transaction: done, failed, put off."""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, bindparam, exists, select, update

from callslip import logs
from callslip.errors import LeaseLost, TransientError, WorkerLost
from callslip.stores.ledger.base import schema
from callslip.stores.ledger.base.fair_queue import RESTING, queue, set_turn
from callslip.stores.ledger.base.locks import VersionKey, lock_document, lock_documents
from callslip.stores.ledger.base.records import Claim, Failure, Step
from callslip.stores.ledger.outbox import events

log = logging.getLogger(__name__)

_V, _S = schema.versions.c, schema.steps.c

_CLAIMED = (
    select(schema.steps)
    .join(schema.versions, (_V.document_id == _S.document_id) & (_V.version == _S.version))
    .where(_S.document_id == bindparam("document_id"), _S.version == bindparam("version"))
    .where(_S.step == bindparam("step"), _S.attempts == bindparam("token"))
    .where(_S.state == "running", _V.state == "queued")
)
_RUNNING = (
    select(_S.document_id, _S.version, _S.step, _S.attempts)
    .join(schema.versions, (_V.document_id == _S.document_id) & (_V.version == _S.version))
    .where(_S.document_id.in_(bindparam("ids", expanding=True)))
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

PAUSE_SECONDS = 1.0
"""Seconds after which an upsert is retried that a move, or another version's upsert, put off."""


@dataclass(frozen=True)
class Finished:
    """The result of a step: its artifact, its counters, and what it left out in sentences."""

    claim: Claim
    artifact: str | None
    counts: dict[str, int]
    warnings: Sequence[str] = ()


def claimed_row(connection: Connection, claim: Claim) -> Row[Any]:
    """The step's row, which the claim owns until the transaction ends.

    Raises LeaseLost if the claim no longer owns the step.
    """
    row = None
    if lock_document(connection, claim.document_id) is not None:
        row = connection.execute(
            _CLAIMED,
            {
                "document_id": claim.document_id,
                "version": claim.version,
                "step": claim.step,
                "token": claim.token,
            },
        ).one_or_none()
    if row is None:
        raise _lost(claim)
    return row


def lost_claims(connection: Connection, claims: Sequence[Claim]) -> list[LeaseLost | None]:
    """For each claim None if it owns its step until the transaction ends, else the error."""
    documents = lock_documents(connection, (claim.document_id for claim in claims))
    running = set(map(tuple, connection.execute(_RUNNING, {"ids": list(documents)})))
    return [
        None if (c.document_id, c.version, c.step, c.token) in running else _lost(c) for c in claims
    ]


def renew_claims(connection: Connection, claims: Sequence[Claim]) -> list[LeaseLost | None]:
    """Extend the leases of claims; return None for each, or LeaseLost if it is lost."""
    lost, now = lost_claims(connection, claims), time.time()
    own = (claim for claim, error in zip(claims, lost, strict=True) if error is None)
    set_steps(
        connection,
        [
            of_step(c.document_id, c.version, c.step) | {"lease_until": now + c.lease_seconds}
            for c in own
        ],
    )
    return lost


def _lost(claim: Claim) -> LeaseLost:
    return LeaseLost(
        f"step {claim.step!r} of document {claim.document_id} is no longer this worker's"
    )


def set_aside_crashed(
    connection: Connection, document_id: str, version: int, step: Step, crashes: int
) -> None:
    """Fail a version whose workers died too often."""
    lost = WorkerLost(f"the worker died {crashes} times in step {step!r}")
    fail_version(connection, document_id, version, step, Failure.of(lost, step), crashes)
    logs.event(
        log,
        "document",
        logging.ERROR,
        document_id=document_id,
        version=version,
        step=step,
        outcome="failed",
        reason=lost.slug,
    )


def put_off(connection: Connection, document_id: str, version: int, why: str, now: float) -> None:
    """Postpone an upsert, without counting an attempt; `why` is a sentence."""
    error = TransientError(why, hint="Nothing: the document follows in a moment.")
    set_turn(connection, document_id, version, RESTING)
    set_step(
        connection,
        document_id,
        version,
        "upsert",
        state="pending",
        lease_until=None,
        retry_at=now + PAUSE_SECONDS,
        error=Failure.of(error, "upsert").as_json(),
    )


def finish_steps(connection: Connection, results: Sequence[Finished]) -> None:
    """Record that steps are done, whose claims the transaction has checked."""
    now = time.time()
    set_steps(
        connection,
        [
            {
                **of_step(r.claim.document_id, r.claim.version, r.claim.step),
                "state": "done",
                "lease_until": None,
                "failing_since": None,
                "error": None,
                "finished_at": now,
                "artifact": r.artifact,
                "counts": r.counts,
                "warnings": list(r.warnings),
            }
            for r in results
        ],
    )
    for step in dict.fromkeys(r.claim.step for r in results):
        done = (r for r in results if r.claim.step == step)
        data = [(r.claim.document_id, r.claim.version, counted(r.counts, r.warnings)) for r in done]
        events.add_all(connection, "step.finished", data, now, step=step)


def counted(counts: dict[str, int], warnings: Sequence[str]) -> dict[str, Any]:
    """The data of an event: the counts of a step or version, and its warnings if it has any."""
    return counts | ({"warnings": list(warnings)} if warnings else {})


def fail_version(
    connection: Connection,
    document_id: str,
    version: int,
    step: Step,
    failure: Failure,
    crashes: int | None = None,
) -> None:
    """Fail a version; the store then gets back what it may have changed of the live one."""
    now = time.time()
    set_step(
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
    set_version(
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
    _restore_live(connection, document_id, version, now)


def _restore_live(connection: Connection, document_id: str, failed: int, now: float) -> None:
    """Reopen the upsert of the live version if one that never went live may have changed chunks.

    Chunks that versions share have the title and the properties of the last one that wrote them.
    """
    document = lock_document(connection, document_id)
    if document is None or document.live_version in (None, failed):
        return
    live = document.live_version
    begun, unfinished = _S.attempts > 0, _S.state != "done"
    which = (_S.version > live) & begun | (_S.version == live) & unfinished
    upserts = exists().where(_S.document_id == document_id, _S.step == "upsert", which)
    if connection.scalar(select(upserts)):
        reopen_steps(connection, document, live, ["upsert"], now)


def reopen_steps(
    connection: Connection, document: Row[Any], version: int, steps: Sequence[Step], now: float
) -> None:
    """Queue the live version with these steps pending. The caller locked the document."""
    queue(connection, document, version, now)
    for step in steps:
        set_step(
            connection,
            document.document_id,
            version,
            step,
            state="pending",
            crashes=0,
            lease_until=None,
            retry_at=None,
            failing_since=None,
            error=None,
        )
    events.add(connection, "document.queued", document.document_id, version, now)


def set_step(
    connection: Connection, document_id: str, version: int, step: Step, **values: Any
) -> None:
    """Set columns of one step of a version."""
    set_steps(connection, [of_step(document_id, version, step) | values])


def set_steps(connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
    """Set the same columns of several steps; a row has `of_step` and the values."""
    if rows:
        connection.execute(_SET_STEP, rows)


def of_step(document_id: str, version: int, step: Step) -> dict[str, Any]:
    """The key of a step in a row of `set_steps`."""
    return {"of_document": document_id, "of_version": version, "of_step": step}


def set_version(connection: Connection, document_id: str, version: int, **values: Any) -> None:
    """Set columns of one version."""
    set_versions(connection, [(document_id, version)], **values)


def set_versions(connection: Connection, versions: Sequence[VersionKey], **values: Any) -> None:
    """Set the same columns of several versions to the same values."""
    if versions:
        rows = [{"of_document": i, "of_version": version, **values} for i, version in versions]
        connection.execute(_SET_VERSION, rows)
