"""Claims, renews and finishes the steps of a version, by leases with fencing tokens.

A claim raises the step's attempt count, which is the fencing token, *before* the work starts.
A second worker then finds the step done or leased, and a worker that lost its lease cannot finish
the step.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from sqlalchemy import Connection, bindparam, exists, select, update

from callslip.errors import CallslipError, LeaseLost, StoreDown
from callslip.stores.ledger.base import schema
from callslip.stores.ledger.base.database import Database
from callslip.stores.ledger.base.fair_queue import RESTING, set_turn
from callslip.stores.ledger.base.lease_keeper import Lease, Renewals
from callslip.stores.ledger.base.locks import lock_document, steps_of_all
from callslip.stores.ledger.base.records import STEPS, Claim, Failure, Refusal, Step
from callslip.stores.ledger.documents.attachments import hide_vanished
from callslip.stores.ledger.documents.claims import Taking, claim_all
from callslip.stores.ledger.documents.progress import (
    Finished,
    claimed_row,
    counted,
    fail_version,
    finish_steps,
    lost_claims,
    renew_claims,
    reopen_steps,
    set_step,
    set_versions,
)
from callslip.stores.ledger.outbox import events

_D, _V, _S, _C = schema.documents.c, schema.versions.c, schema.steps.c, schema.chunks.c

_SUPERSEDE = (
    update(schema.versions)
    .where(_V.document_id == bindparam("of_document"), _V.state == "live")
    .values(state="superseded", superseded_by=bindparam("by"))
)
_SET_DOCUMENT = update(schema.documents).where(_D.document_id == bindparam("of_document"))
_READERS_WRITTEN = (
    update(schema.documents)
    .where(_D.document_id == bindparam("of_document"), _D.audience == bindparam("written"))
    .where(_D.readers_due)
    .values(readers_due=False)
)
_OPEN_CHUNKS = (
    select(_C.document_id, _C.chunk_id, _C.first_version)
    .where(_C.document_id.in_(bindparam("ids", expanding=True)), _C.last_version.is_(None))
    .order_by(_C.first_version)
)
_END_CHUNK = update(schema.chunks).where(
    _C.chunk_id == bindparam("of_chunk"), _C.first_version == bindparam("since")
)


@dataclass(frozen=True)
class Live:
    """A version whose chunks are stored.

    `audience` is that of every chunk in the store; if it is not the document's any more, or None,
    `DocumentReaders.due` still has the document.
    """

    claim: Claim
    chunk_ids: Sequence[str]
    counts: dict[str, int]
    audience: str | None = None


R = TypeVar("R", Finished, Live)
T = TypeVar("T")
U = TypeVar("U")


class Leases:
    """Gives workers leases on steps, and records the results of their work."""

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
        """Take the lease on a step of one version, as `claim_all` does."""
        (claim,) = self.claim_all(
            [(document_id, version)],
            step,
            worker=worker,
            lease_seconds=lease_seconds,
            max_crashes=max_crashes,
        )
        return claim

    def claim_all(
        self,
        versions: Sequence[tuple[str, int]],
        step: Step,
        *,
        worker: str,
        lease_seconds: float,
        max_crashes: int,
    ) -> list[Claim | Refusal]:
        """Take the lease on a step of each version, or return a Refusal with the reason.

        If an earlier lease expired, its worker died, which counts as a crash. After `max_crashes`
        crashes the version fails with WorkerLost. `lease_seconds` is the length of the lease. The
        results have the order of the versions; one transaction takes all leases.
        """
        taking = Taking(step, worker, lease_seconds, max_crashes, time.time())
        return self._in_one(lambda some: self._claim_all(some, taking), versions)

    def _claim_all(
        self, versions: Sequence[tuple[str, int]], taking: Taking
    ) -> list[Claim | Refusal]:
        with self._database.writing() as connection:
            claims = claim_all(connection, versions, taking)
        return [claims[each] for each in versions]

    def renew(self, claim: Claim) -> None:
        """Extend the lease. Raises LeaseLost if the claim no longer owns the step."""
        _raise(self.renew_all([claim]))

    def renew_all(self, claims: Sequence[Claim]) -> list[LeaseLost | None]:
        """Extend leases in one transaction. Returns the same as `finish_all`."""
        return self._in_one(self._renew_in_one, claims)

    def _renew_in_one(self, claims: Sequence[Claim]) -> list[LeaseLost | None]:
        with self._database.writing() as connection:
            return renew_claims(connection, claims)

    def keep(self, claims: Sequence[Claim]) -> Renewals:
        """A context manager that renews the claims in a thread; its value has a lease for each."""
        leases = {
            Lease(f"step {c.step!r} of document {c.document_id}", partial(self.give_back, c)): c
            for c in claims
        }
        seconds = min((claim.lease_seconds for claim in claims), default=0.0)
        return Renewals(
            list(leases), lambda left: self.renew_all([leases[each] for each in left]), seconds
        )

    def finish(
        self,
        claim: Claim,
        artifact: str | None,
        counts: dict[str, int],
        warnings: Sequence[str] = (),
    ) -> None:
        """Record the result of one step, as `finish_all` does.

        Raises LeaseLost if the claim no longer owns the step.
        """
        _raise(self.finish_all([Finished(claim, artifact, counts, warnings)]))

    def finish_all(self, results: Sequence[Finished]) -> list[LeaseLost | None]:
        """Record the results of steps in one transaction.

        Returns for each result None, or the error that its claim no longer owns the step: then
        nothing is recorded of it.
        """
        return self._recorded(results, finish_steps)

    def go_live(
        self,
        claim: Claim,
        chunk_ids: Sequence[str],
        counts: dict[str, int],
        audience: str | None = None,
    ) -> None:
        """Finish the last step of one version, as `go_live_all` does.

        Raises LeaseLost if the claim no longer owns the step.
        """
        _raise(self.go_live_all([Live(claim, chunk_ids, counts, audience)]))

    def go_live_all(self, results: Sequence[Live]) -> list[LeaseLost | None]:
        """Finish the last steps and make their versions the live ones, in one transaction.

        If a chunk of an older version is not among a version's `chunk_ids`, or the version has it
        at another position, its last version is the one before this one. Deletes child documents
        that only older versions contained. Returns the same as `finish_all`.
        """
        return self._recorded(results, _go_live)

    def _recorded(
        self, results: Sequence[R], record: Callable[[Connection, Sequence[R]], None]
    ) -> list[LeaseLost | None]:
        return self._in_one(lambda some: self._recorded_in_one(some, record), results)

    def _in_one(self, act: Callable[[Sequence[T]], list[U]], some: Sequence[T]) -> list[U]:
        """Act on several in one transaction; if it fails on PostgreSQL, in one for each.

        It may be a deadlock with a transaction that locks documents in another order.
        """
        try:
            return act(some)
        except StoreDown:
            if len(some) < 2 or self._database.is_sqlite:
                raise
            return [act([each])[0] for each in some]

    def _recorded_in_one(
        self, results: Sequence[R], record: Callable[[Connection, Sequence[R]], None]
    ) -> list[LeaseLost | None]:
        with self._database.writing() as connection:
            lost = lost_claims(connection, [result.claim for result in results])
            record(connection, [r for r, e in zip(results, lost, strict=True) if e is None])
        return lost

    def release(self, claim: Claim, error: CallslipError, *, wait: float, give_up: float) -> bool:
        """Return a step to the pending state after a transient error.

        No worker may claim it for `wait` seconds. If the step has been failing for more than
        `give_up` seconds by then, the version fails permanently, and the result is True. Raises
        LeaseLost if the claim no longer owns the step.
        """
        now = time.time()
        with self._database.writing() as connection:
            row = claimed_row(connection, claim)
            since = row.failing_since or now
            failure = Failure.of(error, claim.step)
            if now + wait - since > give_up:
                fail_version(connection, claim.document_id, claim.version, claim.step, failure)
                return True
            _rest(connection, claim, now + wait, failing_since=since, error=failure.as_json())
            events.add(
                connection,
                "step.retrying",
                claim.document_id,
                claim.version,
                now,
                step=claim.step,
                data=failure.as_json() | {"wait_seconds": round(wait, 1)},
            )
        return False

    def give_back(self, claim: Claim) -> None:
        """Return a step to the pending state because its worker stops: neither error nor crash.

        Raises LeaseLost if the claim no longer owns the step.
        """
        with self._database.writing() as connection:
            claimed_row(connection, claim)
            _rest(connection, claim, time.time())

    def fail(self, claim: Claim, error: CallslipError) -> None:
        """Fail the version permanently and record the error. Raises LeaseLost as `finish` does."""
        with self._database.writing() as connection:
            claimed_row(connection, claim)
            fail_version(
                connection,
                claim.document_id,
                claim.version,
                claim.step,
                Failure.of(error, claim.step),
            )

    def drop(self, claim: Claim) -> None:
        """Release the lease if no other worker has the step, so that no removal waits for it."""
        with self._database.writing() as connection:
            connection.execute(
                update(schema.steps)
                .where(_S.document_id == claim.document_id, _S.version == claim.version)
                .where(_S.step == claim.step)
                .where(_S.state == "running", _S.attempts == claim.token)
                .values(state="pending", lease_until=None)
            )

    def reopen(self, document_id: str, version: int, first: Step) -> bool:
        """Set the live version's steps from `first` on to pending. Searches still see the version.

        Returns False if the version is not the live one, or if a version of the document is queued:
        that version writes what is missing. The caller dispatches the version, or the sweep does.
        """
        now = time.time()
        with self._database.writing() as connection:
            document = lock_document(connection, document_id)
            if document is None or document.live_version != version:
                return False
            queued = exists().where(_V.document_id == document_id, _V.state == "queued")
            if connection.scalar(select(queued)):
                return False
            reopen_steps(connection, document, version, STEPS[STEPS.index(first) :], now)
        return True

    def expire_all(self) -> int:
        """End every lease without counting a crash. Call it only when no worker can be running.

        Returns the number of leases. The next sweep dispatches these versions again.
        """
        running = select(_S.document_id).where(_S.state == "running")
        with self._database.writing() as connection:
            connection.execute(
                update(schema.versions)
                .where(_V.state == "queued", _V.document_id.in_(running))
                .values(dispatched_at=0)
            )
            return connection.execute(
                update(schema.steps)
                .where(_S.state == "running")
                .values(state="pending", lease_until=None, retry_at=None)
            ).rowcount


def _rest(connection: Connection, claim: Claim, retry_at: float, **values: Any) -> None:
    """Return a claimed step to the pending state until a time; `values` are further columns."""
    set_turn(connection, claim.document_id, claim.version, RESTING)
    set_step(
        connection,
        claim.document_id,
        claim.version,
        claim.step,
        state="pending",
        lease_until=None,
        retry_at=retry_at,
        **values,
    )


def _go_live(connection: Connection, results: Sequence[Live]) -> None:
    now = time.time()
    finish_steps(connection, [Finished(r.claim, None, r.counts) for r in results])
    _end_chunks(connection, results)
    for claim in (r.claim for r in results if r.claim.version > 1):
        events.add_superseded(connection, claim.document_id, "live", now)
        superseded = {"of_document": claim.document_id, "by": claim.version}
        connection.execute(_SUPERSEDE, superseded)
    versions = [(r.claim.document_id, r.claim.version) for r in results]
    set_versions(connection, versions, state="live", turn=None, finished_at=now)
    live = [{"of_document": i, "live_version": version} for i, version in versions]
    written = [
        {"of_document": r.claim.document_id, "written": r.audience}
        for r in results
        if r.audience is not None
    ]
    for statement, rows in ((_SET_DOCUMENT, live), (_READERS_WRITTEN, written)):
        if rows:
            connection.execute(statement, rows)
    done = steps_of_all(connection, versions)
    data = []
    for result, version in zip(results, versions, strict=True):
        warnings = [each for step in done[version] for each in step.warnings or ()]
        data.append((*version, counted(result.counts, warnings)))
    events.add_all(connection, "document.live", data, now)
    for claim in (r.claim for r in results if r.claim.version > 1):
        hide_vanished(connection, claim, now)


def _end_chunks(connection: Connection, results: Sequence[Live]) -> None:
    """End the chunks of older versions that these versions do not have, or have elsewhere."""
    ids = [result.claim.document_id for result in results]
    by_document: defaultdict[str, list[Any]] = defaultdict(list)
    for row in connection.execute(_OPEN_CHUNKS, {"ids": ids}):
        by_document[row.document_id].append(row)
    ended = []
    for result in results:
        claim, remaining = result.claim, set(result.chunk_ids)
        rows = by_document[claim.document_id]
        since = {r.chunk_id: r.first_version for r in rows if r.first_version <= claim.version}
        ended += [
            {"of_chunk": r.chunk_id, "since": r.first_version, "last_version": claim.version - 1}
            for r in rows
            if r.chunk_id not in remaining or r.first_version < since.get(r.chunk_id, 0)
        ]
    if ended:
        connection.execute(_END_CHUNK, ended)


def _raise(lost: Sequence[LeaseLost | None]) -> None:
    for error in lost:
        if error is not None:
            raise error
