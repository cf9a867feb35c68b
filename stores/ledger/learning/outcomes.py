"""Records outcomes (verdicts of users or of the answer validator on hits) in the chunk memory.

An outcome has a key, so that it counts once. For each chunk at most one outcome of a user counts
per day, whatever the question; of the validator, one per asker and question, and only if something
independent agrees (`approvals.py`). Together with the cap of the bonus
(retrieval/ranking/memory.py) this limits the influence of a single user.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Connection, delete, func, insert, select, update

from callslip.errors import Conflict, FeedbackLimit, FeedbackNotFound, InvalidRequest, TraceNotFound
from callslip.readers import Reader
from callslip.stores.chunk_stats import Verdict
from callslip.stores.ledger.base import memory_tables
from callslip.stores.ledger.base.database import Database
from callslip.stores.ledger.learning.approvals import DAY as DAY
from callslip.stores.ledger.learning.approvals import (
    digest,
    key_of,
    number_anew,
    settle,
    weigh_anew,
)
from callslip.stores.ledger.learning.memory import lock_scope, owners_of
from callslip.stores.ledger.learning.searches import (
    PER_TRANSACTION,
    QueryProfile,
    RetrievalEvent,
    read_event,
)

_O, _OC = memory_tables.outcomes.c, memory_tables.outcome_chunks.c

HOUR = 3600.0

_PLAIN = ("outcome_id", "collection", "tenant", "trace_id", "user", "verdict", "at", "withdrawn_at")


@dataclass(frozen=True)
class OutcomeRecord:
    """An outcome. `counted` are those of its `chunk_ids` for which it counts at present."""

    outcome_id: str
    collection: str
    tenant: str
    trace_id: str
    user: str
    verdict: Verdict
    at: float
    withdrawn_at: float | None
    chunk_ids: tuple[str, ...]
    counted: tuple[str, ...]


class Outcomes:
    """Records outcomes and withdraws them."""

    def __init__(self, database: Database, reader: Reader | None = None) -> None:
        self._database, self._reader = database, reader

    def add(
        self,
        trace_id: str,
        chunk_ids: Sequence[str],
        verdict: Verdict,
        *,
        half_life_weeks: float,
        user: str = "",
        key: str = "",
        by_model: bool = False,
        per_hour: int | None = None,
        now: float | None = None,
    ) -> tuple[OutcomeRecord, bool]:
        """Record an outcome and update the statistics of its chunks.

        `by_model` says that a language model validated the answer. The second value of the result
        says whether the outcome is new. A repeated key of the same user changes
        nothing, even after the outcome was withdrawn. Without a key, the search, the verdict and
        the chunks are the key. All outcomes without a user name count as those of one user.

        Raises TraceNotFound if the search was not recorded; InvalidRequest if a chunk is not one of
        its hits; Conflict if the key belongs to another outcome; FeedbackLimit if the user recorded
        `per_hour` outcomes in this collection and tenant within the last hour.
        """
        now = time.time() if now is None else now
        chosen = tuple(sorted(set(chunk_ids)))
        with self._database.writing() as connection:
            event = read_event(connection, trace_id, self._reader)
            _check_hits(event, chosen)
            lock_scope(self._database, connection, event.collection, event.tenant)
            named = ("key", key) if key else ("", trace_id, verdict, *chosen)
            outcome_id = digest(event.collection, event.tenant, user, *named)
            recorded = _read(connection, outcome_id)
            if recorded is not None:
                if (recorded.trace_id, recorded.verdict, recorded.chunk_ids) != (
                    trace_id,
                    verdict,
                    chosen,
                ):
                    raise Conflict(
                        f"the idempotency key {key!r} stands for other feedback",
                        hint="Send another key with other feedback.",
                    )
                return recorded, False
            _check_rate(connection, event, user, per_hour, now)
            made = OutcomeRecord(
                outcome_id,
                *(event.collection, event.tenant, trace_id, user, verdict, now, None),
                chosen,
                (),
            )
            _insert(connection, made, event.profile, by_model=by_model)
            _settle(connection, made, half_life_weeks, now)
            return _read(connection, outcome_id) or made, True

    def withdraw(
        self, outcome_id: str, *, half_life_weeks: float, now: float | None = None
    ) -> OutcomeRecord:
        """Withdraw an outcome, and subtract it from the statistics of its chunks. Idempotent.

        Raises FeedbackNotFound if the outcome does not exist.
        """
        now = time.time() if now is None else now
        with self._database.writing() as connection:
            scope = connection.execute(
                select(_O.collection, _O.tenant).where(_O.outcome_id == outcome_id)
            ).one_or_none()
            if scope is not None:
                lock_scope(self._database, connection, scope.collection, scope.tenant)
            outcome = _read(connection, outcome_id)
            if outcome is None or not self._is_readable(connection, outcome):
                raise FeedbackNotFound(f"feedback {outcome_id!r} does not exist")
            if outcome.withdrawn_at is not None:
                return outcome
            of = _O.outcome_id == outcome_id
            connection.execute(update(memory_tables.outcomes).where(of).values(withdrawn_at=now))
            _settle(connection, outcome, half_life_weeks, now)
            connection.execute(
                update(memory_tables.outcome_chunks)
                .where(_OC.outcome_id == outcome_id)
                .values(counted_as=None, counts=False)
            )
            return replace(outcome, withdrawn_at=now, counted=())

    def _is_readable(self, connection: Connection, outcome: OutcomeRecord) -> bool:
        """Whether the outcome is about a search that the reader may read."""
        if self._reader is None:
            return True
        try:
            read_event(connection, outcome.trace_id, self._reader)
        except TraceNotFound:
            return False
        return True

    def weigh_anew(self, half_life_weeks: float, now: float | None = None) -> int:
        """Weigh the outcomes from before revision 2 of the ledger; see `approvals.weigh_anew`."""
        return weigh_anew(self._database, half_life_weeks, time.time() if now is None else now)

    def of_trace(self, trace_id: str) -> list[OutcomeRecord]:
        """Every outcome of a search, withdrawn ones included, oldest first."""
        query = select(_O.outcome_id).where(_O.trace_id == trace_id).order_by(_O.at, _O.outcome_id)
        with self._database.snapshot() as connection:
            outcomes = [_read(connection, each) for each in list(connection.scalars(query))]
        return [outcome for outcome in outcomes if outcome is not None]

    def scopes(self, outcome_id: str) -> set[tuple[str, str]]:
        """The collection and the tenant of an outcome; empty if it does not exist."""
        query = select(_O.collection, _O.tenant).where(_O.outcome_id == outcome_id)
        with self._database.reading() as connection:
            return {(row.collection, row.tenant) for row in connection.execute(query)}

    def trim(self, before: float) -> int:
        """Delete outcomes from before this time; the statistics of their chunks stay unchanged.

        Returns the number of deleted outcomes.
        """
        old = select(_O.outcome_id).where(_O.at < before).limit(PER_TRANSACTION)
        trimmed = 0
        while True:
            with self._database.writing() as connection:
                ids = list(connection.scalars(old))
                for table in (memory_tables.outcome_chunks, memory_tables.outcomes):
                    connection.execute(delete(table).where(table.c.outcome_id.in_(ids)))
            trimmed += len(ids)
            if len(ids) < PER_TRANSACTION:
                return trimmed


def _check_hits(event: RetrievalEvent, chunk_ids: Sequence[str]) -> None:
    hits = set(event.hits)
    for chunk_id in chunk_ids:
        if chunk_id not in hits:
            raise InvalidRequest(
                f"chunk {chunk_id!r} is none of the hits of search {event.trace_id!r}",
                hint="Send chunk ids of hits of the answer that had this trace_id.",
            )


def _check_rate(
    connection: Connection, event: RetrievalEvent, user: str, per_hour: int | None, now: float
) -> None:
    if per_hour is None:
        return
    count = connection.scalar(
        select(func.count()).where(
            _O.collection == event.collection,
            _O.tenant == event.tenant,
            _O.user == user,
            _O.at > now - HOUR,
        )
    )
    if (count or 0) >= per_hour:
        raise FeedbackLimit(f"this user has given feedback {per_hour} times within an hour")


def _insert(
    connection: Connection, made: OutcomeRecord, profile: QueryProfile, *, by_model: bool
) -> None:
    """Insert an outcome that does not count yet; a chunk whose key is taken has no key."""
    scope = (made.collection, made.tenant)
    owners = owners_of(connection, *scope, made.chunk_ids)
    number_anew(connection, scope, list(owners))
    keys = {
        i: key_of(scope, i, made.user, made.verdict, profile.profile_id, made.at) for i in owners
    }
    taken = set(
        connection.scalars(select(_OC.counted_as).where(_OC.counted_as.in_(list(keys.values()))))
    )
    connection.execute(
        insert(memory_tables.outcomes).values(
            outcome_id=made.outcome_id,
            collection=made.collection,
            tenant=made.tenant,
            trace_id=made.trace_id,
            profile_id=profile.profile_id,
            user=made.user,
            verdict=made.verdict,
            intent=profile.intent,
            entities=list(profile.entities),
            vector=None if profile.vector is None else profile.vector.tobytes(),
            at=made.at,
            by_model=by_model,
        )
    )
    connection.execute(
        insert(memory_tables.outcome_chunks),
        [
            {
                "outcome_id": made.outcome_id,
                "chunk_id": i,
                "document_id": owners.get(i, ""),
                "counted_as": keys[i] if i in keys and keys[i] not in taken else None,
                "with_vector": False,
                "counts": False,
            }
            for i in made.chunk_ids
        ],
    )


def _settle(
    connection: Connection, outcome: OutcomeRecord, half_life_weeks: float, now: float
) -> None:
    scope = (outcome.collection, outcome.tenant)
    settle(connection, scope, outcome.chunk_ids, half_life_weeks=half_life_weeks, now=now)


def _read(connection: Connection, outcome_id: str) -> OutcomeRecord | None:
    row = connection.execute(
        select(memory_tables.outcomes).where(_O.outcome_id == outcome_id)
    ).one_or_none()
    if row is None:
        return None
    chunks = connection.execute(
        select(_OC.chunk_id, _OC.counts).where(_OC.outcome_id == outcome_id).order_by(_OC.chunk_id)
    ).all()
    plain = {name: getattr(row, name) for name in _PLAIN}
    return OutcomeRecord(
        **plain,
        chunk_ids=tuple(each.chunk_id for each in chunks),
        counted=tuple(each.chunk_id for each in chunks if each.counts is not False),
    )
