"""Runs that look for better weights and further facets of a collection, and what they propose.

A run is a row: `running` under a lease, then `nothing`, `waiting` for a yes, `applied`, `declined`,
`superseded` by a later run, or `failed`. A proposal is applied to the collection's options in the
transaction that records it.
"""

import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, insert, select, update

from callslip.errors import CollectionNotFound, Conflict, LeaseLost, ProposalNotFound
from callslip.messages.options import Options
from callslip.stores.ledger.base import memory_tables, schema
from callslip.stores.ledger.base.database import Database
from callslip.vocabulary import ProposalKind, ProposalState

_P, _C = memory_tables.proposals.c, schema.collections.c

MOST_ATTEMPTS = 3
"""Runs of which a worker died so often are given up until the next one is due."""

SCHEDULER = "scheduler"
"""Who decides on proposals that a collection applies without a yes."""

_LONGEST_REASON = 1000


@dataclass(frozen=True)
class Proposal:
    """A run and what it proposes: `changes` of the collection's options, empty if there are none.

    `figures` say why; `reason` says why there is no proposal.
    """

    proposal_id: str
    kind: ProposalKind
    collection: str
    tenant: str
    state: ProposalState
    began_at: float
    ended_at: float | None
    figures: Mapping[str, Any]
    changes: Mapping[str, Any]
    reason: str
    decided_at: float | None
    decided_by: str | None


@dataclass(frozen=True)
class ProposedRun:
    """A run that this process has begun; `attempt` is its fencing token."""

    proposal_id: str
    attempt: int


class Proposals:
    """Begins and ends runs, lists them, and applies or declines what they propose."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def is_due(self, kind: ProposalKind, collection: str, every_seconds: float) -> bool:
        """Whether a run is due: its time has come, or a worker died in one.

        The first run is due `every_seconds` after the collection was made.
        """
        now = time.time()
        with self._database.reading() as connection:
            made_at = connection.scalar(select(_C.created_at).where(_C.name == collection))
            last = _last(connection, kind, collection)
        if made_at is None:
            return False
        if last is not None and last.state == "running":
            return bool(last.lease_until <= now)
        began_at: float = made_at if last is None else last.began_at
        return began_at + every_seconds <= now

    def begin(
        self, kind: ProposalKind, collection: str, tenant: str, lease_seconds: float
    ) -> ProposedRun | None:
        """Begin a run, or continue with one whose worker died; None if that one is given up.

        Raises CollectionNotFound, and Conflict while another process has the run.
        """
        now = time.time()
        with self._database.writing() as connection:
            _locked_options(connection, collection)
            last = _last(connection, kind, collection)
            if last is not None and last.state == "running":
                if last.lease_until > now:
                    raise Conflict(f"a run for collection {collection!r} is under way")
                if last.attempts < MOST_ATTEMPTS:
                    attempt = last.attempts + 1
                    values = {"attempts": attempt, "lease_until": now + lease_seconds}
                    _set(connection, last.proposal_id, **values, tenant=tenant)
                    return ProposedRun(last.proposal_id, attempt)
                _fail(connection, last.proposal_id, "worker-lost: its worker died in each attempt")
                return None
            row = {
                **{"proposal_id": uuid.uuid4().hex, "kind": kind, "collection": collection},
                **{"tenant": tenant, "state": "running", "began_at": now, "attempts": 1},
                **{"lease_until": now + lease_seconds, "figures": {}, "changes": {}, "before": {}},
            }
            connection.execute(insert(memory_tables.proposals).values(**row, reason=""))
        return ProposedRun(str(row["proposal_id"]), 1)

    def end(
        self,
        run: ProposedRun,
        figures: Mapping[str, Any],
        changes: Mapping[str, Any],
        before: Mapping[str, Any],
        reason: str,
    ) -> ProposalState:
        """Record the result of a run; it supersedes proposals that wait.

        `changes` are stored options of the collection, `before` their values that the run has read.
        They are applied at once if the option `apply_proposals` names the kind and the values are
        still these. Raises LeaseLost if another process has the run.
        """
        now = time.time()
        with self._database.writing() as connection:
            row = _running(connection, run)
            options = _locked_options(connection, row.collection)
            connection.execute(
                update(memory_tables.proposals)
                .where(_P.kind == row.kind, _P.collection == row.collection, _P.state == "waiting")
                .values(state="superseded")
            )
            state: ProposalState = "waiting" if changes else "nothing"
            values = {"ended_at": now, "figures": figures, "changes": changes, "before": before}
            opted_in = row.kind in options.get("apply_proposals", ())
            if changes and opted_in and _are(options, before):
                _change(connection, row.collection, options, changes)
                state = "applied"
                values |= {"decided_at": now, "decided_by": SCHEDULER}
            values |= {"state": state, "reason": reason[:_LONGEST_REASON]}
            _set(connection, run.proposal_id, **values)
        return state

    def fail(self, kind: ProposalKind, collection: str, reason: str) -> None:
        """Record that the run which is under way has failed; proposals that wait stay."""
        with self._database.writing() as connection:
            last = _last(connection, kind, collection)
            if last is not None and last.state == "running":
                _fail(connection, last.proposal_id, reason[:_LONGEST_REASON])

    def find(
        self, collection: str, *, states: Iterable[ProposalState] = (), limit: int = 50
    ) -> list[Proposal]:
        """The runs of a collection, newest first, in one of these states if any is named."""
        query = (
            select(memory_tables.proposals)
            .where(_P.collection == collection)
            .order_by(_P.began_at.desc(), _P.proposal_id)
            .limit(limit)
        )
        if wanted := list(states):
            query = query.where(_P.state.in_(wanted))
        with self._database.reading() as connection:
            return [_record(row) for row in connection.execute(query)]

    def declined(self, kind: ProposalKind, collection: str) -> list[Mapping[str, Any]]:
        """The changes that were declined."""
        query = select(_P.changes).where(
            _P.kind == kind, _P.collection == collection, _P.state == "declined"
        )
        with self._database.reading() as connection:
            return list(connection.scalars(query))

    def decide(self, collection: str, proposal_id: str, *, accept: bool, by: str) -> Proposal:
        """Apply a proposal to the collection's options, or decline it.

        The same decision again changes nothing. Raises CollectionNotFound, ProposalNotFound, and
        Conflict if the proposal does not wait or the options have changed since it was made.
        """
        state: ProposalState = "applied" if accept else "declined"
        with self._database.writing() as connection:
            options = _locked_options(connection, collection)
            row = _row(connection, collection, proposal_id)
            if row.state != state:
                if row.state != "waiting":
                    raise Conflict(
                        f"proposal {proposal_id} does not wait: it is {row.state}",
                        hint="`callslip proposals list --state waiting` shows those that do.",
                    )
                if accept:
                    if not _are(options, row.before):
                        raise Conflict(
                            "the options have changed since the proposal was made",
                            hint="Its figures hold no longer: decline it, and let a run make"
                            " another one (`callslip proposals run`).",
                        )
                    _change(connection, collection, options, row.changes)
                _set(connection, proposal_id, state=state, decided_at=time.time(), decided_by=by)
            return _record(_row(connection, collection, proposal_id))


def _last(connection: Connection, kind: str, collection: str) -> Row[Any] | None:
    return connection.execute(
        select(memory_tables.proposals)
        .where(_P.kind == kind, _P.collection == collection)
        .order_by(_P.began_at.desc(), _P.proposal_id)
        .limit(1)
    ).one_or_none()


def _row(connection: Connection, collection: str, proposal_id: str) -> Row[Any]:
    row = connection.execute(
        select(memory_tables.proposals).where(
            _P.proposal_id == proposal_id, _P.collection == collection
        )
    ).one_or_none()
    if row is None:
        raise ProposalNotFound(f"collection {collection!r} has no proposal {proposal_id!r}")
    return row


def _running(connection: Connection, run: ProposedRun) -> Row[Any]:
    row = connection.execute(
        select(memory_tables.proposals).where(
            _P.proposal_id == run.proposal_id,
            _P.state == "running",
            _P.attempts == run.attempt,
        )
    ).one_or_none()
    if row is None:
        raise LeaseLost(f"another worker has the run {run.proposal_id}, or it was given up")
    return row


def _locked_options(connection: Connection, collection: str) -> dict[str, Any]:
    """The stored options of a collection, which no other transaction changes meanwhile."""
    row = connection.execute(
        select(_C.options).where(_C.name == collection, _C.deleted_at.is_(None)).with_for_update()
    ).one_or_none()
    if row is None:
        raise CollectionNotFound(f"collection {collection!r} does not exist")
    return dict(row.options or {})


def _change(
    connection: Connection, collection: str, options: dict[str, Any], changes: Mapping[str, Any]
) -> None:
    """Replace the options that a proposal changes. An invalid option raises ValidationError."""
    changed = Options.model_validate({**options, **changes})
    connection.execute(
        update(schema.collections)
        .where(_C.name == collection)
        .values(options=changed.model_dump(mode="json", exclude_defaults=True))
    )


def _are(options: Mapping[str, Any], values: Mapping[str, Any]) -> bool:
    return all(options.get(name) == value for name, value in values.items())


def _fail(connection: Connection, proposal_id: str, reason: str) -> None:
    _set(connection, proposal_id, state="failed", ended_at=time.time(), reason=reason)


def _set(connection: Connection, proposal_id: str, **values: Any) -> None:
    connection.execute(
        update(memory_tables.proposals).where(_P.proposal_id == proposal_id).values(**values)
    )


def _record(row: Row[Any]) -> Proposal:
    fields = Proposal.__dataclass_fields__
    return Proposal(**{name: getattr(row, name) for name in fields})
