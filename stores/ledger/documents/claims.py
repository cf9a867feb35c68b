"""Takes the leases on a step of several versions, within a transaction.

One version of a document is written at a time: the upsert of another one waits while a worker has a
lease on an upsert. A worker learns only at its next renewal that its version is superseded; what it
writes until then would replace what a newer version, which may be live by then, has written.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, bindparam, select

from callslip.stores.ledger.base import schema
from callslip.stores.ledger.base.fair_queue import SENT, set_turn
from callslip.stores.ledger.base.locks import VersionKey, lock_documents, steps_of_all
from callslip.stores.ledger.base.records import STEPS, Claim, Refusal, Step
from callslip.stores.ledger.base.rows import version_record
from callslip.stores.ledger.collections.moves import paused_until
from callslip.stores.ledger.documents.progress import (
    of_step,
    put_off,
    set_aside_crashed,
    set_steps,
)
from callslip.stores.ledger.outbox import events

_V, _S = schema.versions.c, schema.steps.c

_VERSIONS = select(schema.versions).where(
    _V.document_id.in_(bindparam("ids", expanding=True)),
    _V.version.in_(bindparam("versions", expanding=True)),
)
_WRITING = (
    select(_S.document_id, _S.version)
    .where(_S.document_id.in_(bindparam("ids", expanding=True)), _S.step == "upsert")
    .where(_S.state == "running", _S.lease_until > bindparam("now"))
    .where(_S.lease_until <= bindparam("latest"))
)


@dataclass(frozen=True)
class Taking:
    """What all claims of a transaction have in common; `now` is in UTC seconds since 1970."""

    step: Step
    worker: str
    lease_seconds: float
    max_crashes: int
    now: float


def claim_all(
    connection: Connection, versions: Sequence[VersionKey], taking: Taking
) -> dict[VersionKey, Claim | Refusal]:
    """Take the lease on a step of each version, or return the reason why not."""
    every = sorted(set(versions))
    ids, numbers = {i for i, _ in every}, {version for _, version in every}
    documents = lock_documents(connection, ids)
    rows = connection.execute(_VERSIONS, {"ids": sorted(ids), "versions": sorted(numbers)})
    records = {(row.document_id, row.version): row for row in rows}
    steps = steps_of_all(connection, every)
    writing = _writing(connection, ids, taking) if taking.step == "upsert" else {}
    claims: dict[VersionKey, Claim | Refusal] = {}
    for key in every:
        document, record = documents.get(key[0]), records.get(key)
        if document is None or record is None:
            claims[key] = Refusal("gone")
        else:
            others = writing.get(key[0], set()) - {key[1]}
            claims[key] = _claim(connection, document, record, steps[key], taking, others)
    _take(connection, [c for c in claims.values() if isinstance(c, Claim)], steps, taking)
    return claims


def _claim(
    connection: Connection,
    document: Row[Any],
    record: Row[Any],
    steps: Sequence[Row[Any]],
    taking: Taking,
    writing: Collection[int],
) -> Claim | Refusal:
    """The claim on a version's step, which `_take` records, or the reason why there is none.

    `writing` has the other versions of the document that a worker is writing.
    """
    step, now, version = taking.step, taking.now, record.version
    rows = {row.step: row for row in steps}
    row = rows[step]
    if row.state == "done":
        return Refusal("done")
    if record.state != "queued":
        return Refusal("gone")
    if any(rows[earlier].state != "done" for earlier in STEPS[: STEPS.index(step)]):
        return Refusal("leased")
    if row.state == "running" and row.lease_until > now:
        return Refusal("leased")
    if row.retry_at is not None and row.retry_at > now:
        return Refusal("leased")
    until = paused_until(connection, document.collection) if step == "upsert" else 0.0
    if until > now or writing:
        moving = f"collection {document.collection!r} is being moved to another store"
        why = moving if until > now else "another version of the document is still being written"
        put_off(connection, document.document_id, version, why, now)
        return Refusal("leased")
    crashes = _crashes(row)
    if crashes >= taking.max_crashes:
        set_aside_crashed(connection, document.document_id, version, step, crashes)
        return Refusal("gone")
    if record.turn != SENT:
        set_turn(connection, document.document_id, version, SENT)
    return Claim(
        document.document_id,
        version,
        step,
        token=row.attempts + 1,
        lease_seconds=taking.lease_seconds,
        record=version_record(record, document),
        artifacts={name: r.artifact for name, r in rows.items() if r.artifact is not None},
        document_created_at=document.created_at,
        audience=document.audience,
    )


def _writing(
    connection: Connection, ids: Collection[str], taking: Taking
) -> Mapping[str, set[int]]:
    """The versions of documents whose upserts have a live lease, by document id.

    A lease that lasts longer than any is of a worker that died before the clock was set back.
    """
    values = {"now": taking.now, "latest": taking.now + 2 * taking.lease_seconds}
    writing: defaultdict[str, set[int]] = defaultdict(set)
    for row in connection.execute(_WRITING, {"ids": sorted(ids), **values}):
        writing[row.document_id].add(row.version)
    return writing


def _take(
    connection: Connection,
    claims: Sequence[Claim],
    steps: Mapping[VersionKey, Sequence[Row[Any]]],
    taking: Taking,
) -> None:
    """Record the leases of these claims."""
    step, now = taking.step, taking.now
    rows = []
    for claim in claims:
        key = claim.document_id, claim.version
        (row,) = (row for row in steps[key] if row.step == step)
        values = {
            "state": "running",
            "attempts": claim.token,
            "crashes": _crashes(row),
            "worker": taking.worker,
            "lease_until": now + taking.lease_seconds,
            "retry_at": None,
            "started_at": now,
            "finished_at": None,
        }
        rows.append(of_step(*key, step) | values)
    set_steps(connection, rows)
    attempts = [(c.document_id, c.version, {"attempt": c.token}) for c in claims]
    events.add_all(connection, "step.started", attempts, now, step=step)


def _crashes(row: Row[Any]) -> int:
    """How often a worker died in a step: one that still is running at its next claim did."""
    return int(row.crashes + (row.state == "running"))
