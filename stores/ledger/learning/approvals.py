"""Decides which outcomes count in a chunk's statistics, and keeps the statistics at that.

A person's verdict always counts. An approval, which the validator of an answer gives to each cited
chunk, counts only if something independent agrees: a person, a language model as validator, or an
approval of the chunk by another asker for a differently worded question. Once a person found the
chunk unhelpful, approvals count only while more persons find it helpful.
"""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    and_,
    bindparam,
    case,
    func,
    or_,
    select,
    update,
)

from callslip.stores.chunk_stats import ChunkStats, Verdict, Win
from callslip.stores.ledger.base import memory_tables
from callslip.stores.ledger.base.database import Database
from callslip.stores.ledger.learning.memory import (
    PER_TRANSACTION,
    lock_scope,
    owners_of,
    put_stats,
    read_stats,
)

_O, _OC = memory_tables.outcomes.c, memory_tables.outcome_chunks.c

DAY = 86_400.0

_APPROVAL = _O.verdict == "validated"

_BOTH = memory_tables.outcomes.join(memory_tables.outcome_chunks, _OC.outcome_id == _O.outcome_id)

_OF_CHUNK = (_OC.chunk_id, _OC.with_vector)

_SET = update(memory_tables.outcome_chunks).where(
    _OC.outcome_id == bindparam("of_outcome"), _OC.chunk_id == bindparam("of_chunk")
)


def key_of(
    scope: tuple[str, str], chunk_id: str, user: str, verdict: Verdict, profile_id: str, at: float
) -> str:
    """The key that counts once: a person's verdict on a chunk once a day, an approval by question.

    `scope` is the pair of collection and tenant, `profile_id` the id of the question.
    """
    once = ("approval", profile_id) if verdict == "validated" else (str(int(at // DAY)),)
    return digest(*scope, chunk_id, user, *once)


def digest(*parts: str) -> str:
    """A hash of 32 hexadecimal digits; the hashed lengths separate adjacent parts."""
    made = hashlib.blake2b(digest_size=16)
    for part in parts:
        encoded = part.encode("utf-8", "surrogatepass")
        made.update(len(encoded).to_bytes(8, "big"))
        made.update(encoded)
    return made.hexdigest()


def settle(
    connection: Connection,
    scope: tuple[str, str],
    chunk_ids: Sequence[str],
    *,
    half_life_weeks: float,
    now: float,
) -> None:
    """Add the outcomes that count to the statistics of these chunks, subtract the others.

    `scope` is the pair of collection and tenant, which the caller has locked. Leaves out chunks of
    deleted documents.
    """
    known = read_stats(connection, *scope, chunk_ids)
    owners = owners_of(connection, *scope, chunk_ids)
    owners |= {chunk_id: stats.document_id for chunk_id, stats in known.items()}
    number_anew(connection, scope, list(owners))
    counts = and_(
        _OC.counted_as.is_not(None),
        _O.withdrawn_at.is_(None),
        or_(~_APPROVAL, _OC.chunk_id.in_(_agreed(connection, scope, list(owners)))),
    )
    rows = connection.execute(
        select(memory_tables.outcomes, *_OF_CHUNK, counts.label("now_counts"))
        .select_from(_BOTH)
        .where(*_of(scope, list(owners)), _OC.counts != counts)
        .order_by(_O.at, _O.outcome_id)
    ).all()
    changes = []
    for row in rows:
        stats = known.get(row.chunk_id)
        if stats is None:
            stats = ChunkStats(row.chunk_id, owners[row.chunk_id], utility_at=now)
        win, with_vector = _win_of(row), False
        if row.now_counts:
            stats, with_vector = stats.add(win, now, half_life_weeks)
        else:
            stats = stats.take(win, now, half_life_weeks, with_vector=row.with_vector)
        known[row.chunk_id] = stats
        changes.append({**_named(row), "counts": row.now_counts, "with_vector": with_vector})
    if changes:
        connection.execute(_SET, changes)
        put_stats(connection, *scope, [known[i] for i in sorted({r.chunk_id for r in rows})])


def weigh_anew(database: Database, half_life_weeks: float, now: float) -> int:
    """Weigh the outcomes from before revision 2 of the ledger. Returns the number of chunks.

    Idempotent; a transaction changes at most PER_TRANSACTION chunks of one scope.
    """
    unweighed = (
        select(_O.collection, _O.tenant, _OC.chunk_id)
        .select_from(_BOTH)
        .where(_OC.counts.is_(None))
        .distinct()
        .limit(PER_TRANSACTION)
    )
    count = 0
    while True:
        with database.writing() as connection:
            rows = connection.execute(unweighed).all()
            if not rows:
                return count
            scope = rows[0].collection, rows[0].tenant
            chunk_ids = [r.chunk_id for r in rows if (r.collection, r.tenant) == scope]
            lock_scope(database, connection, *scope)
            settle(connection, scope, chunk_ids, half_life_weeks=half_life_weeks, now=now)
            mine = select(_O.outcome_id).where(_O.collection == scope[0], _O.tenant == scope[1])
            connection.execute(  # of deleted documents
                update(memory_tables.outcome_chunks)
                .where(
                    _OC.chunk_id.in_(chunk_ids),
                    _OC.counts.is_(None),
                    _OC.outcome_id.in_(mine),
                )
                .values(counts=False, counted_as=None)
            )
        count += len(chunk_ids)


def _agreed(connection: Connection, scope: tuple[str, str], chunk_ids: Sequence[str]) -> list[str]:
    """The chunks whose approvals count.

    Two approvals that differ both in the asker and in the question exist if neither all askers nor
    all questions are equal.
    """
    useful = func.sum(case((_O.verdict == "helpful", 1), else_=0))
    useless = func.sum(case((_O.verdict == "unhelpful", 1), else_=0))
    by_model = func.sum(case((and_(_APPROVAL, _O.by_model), 1), else_=0))
    user = case((_APPROVAL, _O.user))
    question = case((_APPROVAL, _O.profile_id))
    differ = and_(func.min(user) != func.max(user), func.min(question) != func.max(question))
    query = (
        select(_OC.chunk_id)
        .select_from(_BOTH)
        .where(*_of(scope, chunk_ids), _OC.counted_as.is_not(None), _O.withdrawn_at.is_(None))
        .group_by(_OC.chunk_id)
        .having(or_(useful > useless, and_(useless == 0, or_(by_model > 0, differ))))
    )
    return list(connection.scalars(query))


def number_anew(connection: Connection, scope: tuple[str, str], chunk_ids: Sequence[str]) -> None:
    """Give counted outcomes from before revision 2 their keys of today; a repeated one has none."""
    rows = connection.execute(
        select(memory_tables.outcomes, *_OF_CHUNK, _OC.counted_as)
        .select_from(_BOTH)
        .where(*_of(scope, chunk_ids), _OC.counts.is_(None))
        .order_by(_O.at, _O.outcome_id)
    ).all()
    if not rows:
        return
    numbered = select(_OC.counted_as).select_from(_BOTH)
    taken = set(connection.scalars(numbered.where(*_of(scope, chunk_ids), _OC.counts.is_not(None))))
    changes = []
    for row in rows:
        key = row.counted_as
        if row.verdict == "validated":
            key = key_of(scope, row.chunk_id, row.user, row.verdict, row.profile_id, row.at)
        changes.append({**_named(row), "counts": True, "counted_as": None if key in taken else key})
        taken.add(key)
    connection.execute(_SET, changes)


def _of(scope: tuple[str, str], chunk_ids: Sequence[str]) -> list[ColumnElement[bool]]:
    collection, tenant = scope
    return [_O.collection == collection, _O.tenant == tenant, _OC.chunk_id.in_(chunk_ids)]


def _named(row: Row[Any]) -> dict[str, str]:
    return {"of_outcome": row.outcome_id, "of_chunk": row.chunk_id}


def _win_of(row: Row[Any]) -> Win:
    vector = None if row.vector is None else np.frombuffer(row.vector, np.float32)
    return Win(row.at, row.verdict != "unhelpful", row.intent, row.entities, vector)
