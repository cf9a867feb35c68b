"""Records outcomes (verdicts of users or of the answer validator on hits) in the chunk memory.

An outcome has a key, so that it counts once. For each chunk at most one outcome of a user counts
per day, whatever the question; of the validator, one per day and question. Together with the cap of
the bonus (retrieval/ranking/memory.py) this limits the influence of a single user.
"""

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sqlalchemy import Connection, Row, delete, func, insert, select, update

from callslip.errors import Conflict, FeedbackLimit, FeedbackNotFound, InvalidRequest
from callslip.stores.chunk_stats import ChunkStats, Verdict, Win
from callslip.stores.ledger.base import memory_tables
from callslip.stores.ledger.base.database import Database
from callslip.stores.ledger.learning.memory import lock_scope, owners_of, put_stats, read_stats
from callslip.stores.ledger.learning.searches import (
    PER_TRANSACTION,
    QueryProfile,
    RetrievalEvent,
    read_event,
)

_O, _OC = memory_tables.outcomes.c, memory_tables.outcome_chunks.c

DAY, HOUR = 86_400.0, 3600.0

_PLAIN = ("outcome_id", "collection", "tenant", "trace_id", "user", "verdict", "at", "withdrawn_at")


@dataclass(frozen=True)
class OutcomeRecord:
    """An outcome. `counted` are those of its `chunk_ids` whose statistics it changed."""

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

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(
        self,
        trace_id: str,
        chunk_ids: Sequence[str],
        verdict: Verdict,
        *,
        half_life_weeks: float,
        user: str = "",
        key: str = "",
        per_hour: int | None = None,
        now: float | None = None,
    ) -> tuple[OutcomeRecord, bool]:
        """Record an outcome and update the statistics of its chunks.

        The second value says whether the outcome is new. A repeated key of the same user changes
        nothing, even after the outcome was withdrawn. Without a key, the search, the verdict and
        the chunks are the key. All outcomes without a user name count as those of one user.

        Raises TraceNotFound if the search was not recorded; InvalidRequest if a chunk is not one of
        its hits; Conflict if the key belongs to another outcome; FeedbackLimit if the user recorded
        `per_hour` outcomes in this collection and tenant within the last hour.
        """
        now = time.time() if now is None else now
        chosen = tuple(sorted(set(chunk_ids)))
        with self._database.writing() as connection:
            event = read_event(connection, trace_id)
            _check_hits(event, chosen)
            lock_scope(self._database, connection, event.collection, event.tenant)
            named = ("key", key) if key else ("", trace_id, verdict, *chosen)
            outcome_id = _digest(event.collection, event.tenant, user, *named)
            known = _read(connection, outcome_id)
            if known is not None:
                recorded, _ = known
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
            return _learn(connection, made, event.profile, half_life_weeks), True

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
            known = _read(connection, outcome_id)
            if known is None:
                raise FeedbackNotFound(f"feedback {outcome_id!r} does not exist")
            outcome, row = known
            if outcome.withdrawn_at is not None:
                return outcome
            _unlearn(connection, row, half_life_weeks, now)
            of = _O.outcome_id == outcome_id
            connection.execute(update(memory_tables.outcomes).where(of).values(withdrawn_at=now))
            connection.execute(
                update(memory_tables.outcome_chunks)
                .where(_OC.outcome_id == outcome_id)
                .values(counted_as=None)
            )
            return replace(outcome, withdrawn_at=now, counted=())

    def of_trace(self, trace_id: str) -> list[OutcomeRecord]:
        """Every outcome of a search, withdrawn ones included, oldest first."""
        query = select(_O.outcome_id).where(_O.trace_id == trace_id).order_by(_O.at, _O.outcome_id)
        with self._database.snapshot() as connection:
            outcomes = [_read(connection, each) for each in list(connection.scalars(query))]
        return [known[0] for known in outcomes if known is not None]

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


def _learn(
    connection: Connection, made: OutcomeRecord, profile: QueryProfile, half_life_weeks: float
) -> OutcomeRecord:
    scope = (made.collection, made.tenant)
    owners = owners_of(connection, *scope, made.chunk_ids)
    keys = {chunk_id: _counts_as(made, chunk_id, profile) for chunk_id in owners}
    taken = set(
        connection.scalars(select(_OC.counted_as).where(_OC.counted_as.in_(list(keys.values()))))
    )
    counted = [chunk_id for chunk_id in sorted(owners) if keys[chunk_id] not in taken]
    known = read_stats(connection, *scope, counted)
    win = Win(
        made.at, made.verdict != "unhelpful", profile.intent, profile.entities, profile.vector
    )
    changed = {
        i: known.get(i, ChunkStats(i, owners[i], utility_at=made.at)).add(
            win, made.at, half_life_weeks
        )
        for i in counted
    }
    put_stats(connection, *scope, [stats for stats, _ in changed.values()])
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
        )
    )
    connection.execute(
        insert(memory_tables.outcome_chunks),
        [
            {
                "outcome_id": made.outcome_id,
                "chunk_id": i,
                "document_id": owners.get(i, ""),
                "counted_as": keys[i] if i in changed else None,
                "with_vector": i in changed and changed[i][1],
            }
            for i in made.chunk_ids
        ],
    )
    return replace(made, counted=tuple(counted))


def _unlearn(connection: Connection, row: Row[Any], half_life_weeks: float, now: float) -> None:
    scope = (row.collection, row.tenant)
    with_vector = {
        each.chunk_id: each.with_vector
        for each in connection.execute(
            select(_OC.chunk_id, _OC.with_vector).where(
                _OC.outcome_id == row.outcome_id, _OC.counted_as.is_not(None)
            )
        )
    }
    vector = None if row.vector is None else np.frombuffer(row.vector, np.float32)
    win = Win(row.at, row.verdict != "unhelpful", row.intent, row.entities, vector)
    known = read_stats(connection, *scope, list(with_vector))
    put_stats(
        connection,
        *scope,
        [
            stats.take(win, now, half_life_weeks, with_vector=with_vector[chunk_id])
            for chunk_id, stats in known.items()
        ],
    )


def _read(connection: Connection, outcome_id: str) -> tuple[OutcomeRecord, Row[Any]] | None:
    row = connection.execute(
        select(memory_tables.outcomes).where(_O.outcome_id == outcome_id)
    ).one_or_none()
    if row is None:
        return None
    chunks = connection.execute(
        select(_OC.chunk_id, _OC.counted_as)
        .where(_OC.outcome_id == outcome_id)
        .order_by(_OC.chunk_id)
    ).all()
    plain = {name: getattr(row, name) for name in _PLAIN}
    outcome = OutcomeRecord(
        **plain,
        chunk_ids=tuple(each.chunk_id for each in chunks),
        counted=tuple(each.chunk_id for each in chunks if each.counted_as is not None),
    )
    return outcome, row


def _counts_as(made: OutcomeRecord, chunk_id: str, profile: QueryProfile) -> str:
    """The key that counts once: of a chunk, a day and a user; for the validator also a question."""
    who = (profile.profile_id,) if made.verdict == "validated" else ()
    day = str(int(made.at // DAY))
    return _digest(made.collection, made.tenant, chunk_id, day, made.user, *who)


def _digest(*parts: str) -> str:
    """A hash of 32 hexadecimal digits; the hashed lengths separate adjacent parts."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        encoded = part.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "big"))
        digest.update(encoded)
    return digest.hexdigest()
