"""Chunk memory in the ledger: reading it for a search, showing, moving and forgetting it.

Who changes a place, a collection or one tenant of it, first raises `changes` in its row and so has
the place to himself until the transaction ends. What a search may be cached by is `changes` too.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sqlalchemy import (
    ColumnElement,
    Connection,
    Table,
    bindparam,
    delete,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite

from stores.chunk_stats import WEEK, ChunkStats, decay
from stores.ledger import memory_tables, schema
from stores.ledger.chunks import IDS_PER_STATEMENT, THERE
from stores.ledger.database import Database
from stores.records import Vector

_S, _P = memory_tables.chunk_stats.c, memory_tables.memory_places.c
_Q = memory_tables.query_profiles.c
_O, _OC = memory_tables.outcomes.c, memory_tables.outcome_chunks.c
_D, _C = schema.documents.c, schema.chunks.c

PER_TRANSACTION = 500
"""Rows that are changed together; other writers come in between."""

CENTRE_OF = 256
"""Questions, the newest, that a centre is the mean of."""

_HOT = (
    *(_S.chunk_id, _S.document_id, _S.useful, _S.useless, _S.last_useful_at),
    *(_S.utility, _S.utility_at, _S.intents, _S.questions, _S.question_sum),
)  # the entities of a chunk may be many, and no bonus asks for them

# Statements of the hot path are built once: building one costs more than running it.
_ALL = select(*_HOT, _S.entities)
_OF = select(*_HOT).where(
    _S.collection == bindparam("collection"),
    _S.tenant == bindparam("tenant"),
    _S.chunk_id.in_(bindparam("chunk_ids", expanding=True)),
)
_PLACE = select(_P.changes, _P.centre, _P.questions).where(
    _P.collection == bindparam("collection"), _P.tenant == bindparam("tenant")
)


@dataclass(frozen=True)
class MemoryPlace:
    """What a collection, or a tenant of it, has learned, as a whole.

    `changes` grows with each change of it. `centre` is the mean of `questions` questions, shape
    (dimension,), or None while there are too few.
    """

    changes: int = 0
    centre: Vector | None = None
    questions: int = 0


@dataclass(frozen=True)
class MemorySums:
    """How much a place remembers."""

    chunks: int
    useful: int
    useless: int


class Memory:
    """What helped before, by chunk."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def place(self, collection: str, tenant: str = "") -> MemoryPlace:
        """Of a place that has learned nothing, an empty one."""
        with self._database.reading() as connection:
            row = connection.execute(_PLACE, _at(collection, tenant)).one_or_none()
        if row is None:
            return MemoryPlace()
        centre = None if row.centre is None else np.frombuffer(row.centre, np.float32)
        return MemoryPlace(row.changes, centre, row.questions)

    def of(
        self, collection: str, chunk_ids: Sequence[str], *, tenant: str = ""
    ) -> dict[str, ChunkStats]:
        """What is known of these chunks, but for the entities; unknown ones are left out."""
        found: dict[str, ChunkStats] = {}
        with self._database.reading() as connection:
            for start in range(0, len(chunk_ids), IDS_PER_STATEMENT):
                some = list(chunk_ids[start : start + IDS_PER_STATEMENT])
                rows = connection.execute(_OF, _at(collection, tenant) | {"chunk_ids": some})
                found.update((row.chunk_id, stats_of(row)) for row in rows)
        return found

    def best(
        self, collection: str, *, tenant: str = "", limit: int = 100, after: str = ""
    ) -> list[ChunkStats]:
        """Chunks of the greatest utility first; the next page begins `after` the last one's id.

        Utilities are compared as they were written, at most a week ago: they fade alike.
        """
        mine = _is(_S, collection, tenant)
        query = _ALL.where(*mine)
        if after:
            last = select(_S.utility).where(*mine, _S.chunk_id == after).scalar_subquery()
            query = query.where(
                (_S.utility < last) | ((_S.utility == last) & (_S.chunk_id > after))
            )
        with self._database.reading() as connection:
            rows = connection.execute(query.order_by(_S.utility.desc(), _S.chunk_id).limit(limit))
            return [stats_of(row) for row in rows]

    def sums(self, collection: str, *, tenant: str = "") -> MemorySums:
        """How much is remembered."""
        query = select(
            func.count(),
            func.coalesce(func.sum(_S.useful), 0),
            func.coalesce(func.sum(_S.useless), 0),
        ).where(*_is(_S, collection, tenant))
        with self._database.reading() as connection:
            return MemorySums(*connection.execute(query).one())

    def page(
        self, collection: str, *, tenant: str = "", after: str = "", limit: int = PER_TRANSACTION
    ) -> list[ChunkStats]:
        """All of it by chunk id, page by page, for an export."""
        query = (
            _ALL.where(*_is(_S, collection, tenant), _S.chunk_id > after)
            .order_by(_S.chunk_id)
            .limit(limit)
        )
        with self._database.reading() as connection:
            return [stats_of(row) for row in connection.execute(query)]

    def take_in(self, collection: str, given: Iterable[ChunkStats], *, tenant: str = "") -> int:
        """Put exported memory in the place of what is known of these chunks; how many it was.

        Chunks that the place does not have are left out. Outcomes that counted for the replaced
        memory can be withdrawn no more.
        """
        by_id = {stats.chunk_id: stats for stats in given}
        ids, taken = sorted(by_id), 0
        for start in range(0, len(ids), PER_TRANSACTION):
            some = ids[start : start + PER_TRANSACTION]
            with self._database.writing() as connection:
                lock_place(self._database, connection, collection, tenant)
                owners = owners_of(connection, collection, tenant, some)
                forget_stats(connection, collection, tenant, _S.chunk_id.in_(list(owners)))
                put_stats(
                    connection,
                    collection,
                    tenant,
                    [replace(by_id[i], document_id=owner) for i, owner in sorted(owners.items())],
                )
            taken += len(owners)
        return taken

    def reset(self, collection: str, *, tenant: str = "") -> int:
        """Forget all of a place; returns of how many chunks. What was recorded of searches stays.

        Outcomes that counted do so no more, and can be given anew.
        """
        with self._database.writing() as connection:
            lock_place(self._database, connection, collection, tenant)
            return forget_stats(connection, collection, tenant, _S.chunk_id.is_not(None))

    def fade(self, half_life_weeks: float, now: float | None = None) -> int:
        """Write down the decay of what was written a week ago or earlier; returns how many rows.

        Searches compute it anyway: this keeps the order of `best` true.
        """
        now = time.time() if now is None else now
        old = select(
            *(_S[name] for name in ("collection", "tenant", "chunk_id", "utility", "utility_at"))
        ).where(_S.utility_at <= now - WEEK)
        change = (
            update(memory_tables.chunk_stats)
            .where(
                *(_S[name] == bindparam(f"of_{name}") for name in ("collection", "tenant")),
                _S.chunk_id == bindparam("of_chunk_id"),
                _S.utility_at == bindparam("of_utility_at"),  # else an outcome came between
            )
            .values(utility=bindparam("faded"), utility_at=now)
        )
        count = 0
        while True:
            with self._database.writing() as connection:
                rows = connection.execute(old.limit(PER_TRANSACTION)).all()
                if rows:
                    connection.execute(
                        change,
                        [
                            {f"of_{name}": value for name, value in row._mapping.items()}
                            | {
                                "faded": decay(
                                    row.utility, (now - row.utility_at) / WEEK, half_life_weeks
                                )
                            }
                            for row in rows
                        ],
                    )
            count += len(rows)
            if len(rows) < PER_TRANSACTION:
                return count

    def centre(self, fewest: int) -> int:
        """Take the mean of each place's newest questions anew; returns of how many places.

        None where fewer than `fewest` are known; questions of another dimension are left out.
        """
        with self._database.reading() as connection:
            places = connection.execute(select(_P.collection, _P.tenant)).all()
        for place in places:
            newest = (
                select(_Q.vector)
                .where(*_is(_Q, place.collection, place.tenant), _Q.vector.is_not(None))
                .order_by(_Q.last_at.desc())
                .limit(CENTRE_OF)
            )
            with self._database.reading() as connection:
                found = [np.frombuffer(v, np.float32) for v in connection.scalars(newest)]
            mean = _mean(found)
            enough = mean is not None and len(found) >= fewest
            with self._database.writing() as connection:
                connection.execute(
                    update(memory_tables.memory_places)
                    .where(*_is(_P, place.collection, place.tenant))
                    .values(
                        centre=mean.tobytes() if mean is not None and enough else None,
                        questions=len(found) if enough else 0,
                    )
                )
        return len(places)


def lock_place(database: Database, connection: Connection, collection: str, tenant: str) -> None:
    """Have a place to oneself until the transaction ends, and say that it changes."""
    made: Callable[[Table], Any] = sqlite.insert if database.is_sqlite else postgresql.insert
    connection.execute(
        made(memory_tables.memory_places)
        .values(**_at(collection, tenant), changes=0)
        .on_conflict_do_nothing()
    )
    connection.execute(
        update(memory_tables.memory_places)
        .where(*_is(_P, collection, tenant))
        .values(changes=_P.changes + 1)
    )


def owners_of(
    connection: Connection, collection: str, tenant: str, chunk_ids: Sequence[str]
) -> dict[str, str]:
    """Chunk id → document id of those that a document of the place has, which is not deleted.

    The documents cannot be deleted before the transaction ends, so that nothing is learned about
    one whose memory is gone already.
    """
    query = (
        select(_C.chunk_id, _C.document_id)
        .join(schema.documents, _D.document_id == _C.document_id)
        .where(_C.chunk_id.in_(list(chunk_ids)), THERE, _D.deleted_at.is_(None))
        .with_for_update(read=True, of=schema.documents)
    )
    rows = connection.execute(query, _at(collection, tenant))
    return {row.chunk_id: row.document_id for row in rows}


def read_stats(
    connection: Connection, collection: str, tenant: str, chunk_ids: Sequence[str]
) -> dict[str, ChunkStats]:
    """All that is known of these chunks, within a transaction."""
    query = _ALL.where(*_is(_S, collection, tenant), _S.chunk_id.in_(list(chunk_ids)))
    return {row.chunk_id: stats_of(row) for row in connection.execute(query)}


def put_stats(
    connection: Connection, collection: str, tenant: str, given: Sequence[ChunkStats]
) -> None:
    """Write what is known of chunks in the place of what was; nothing is left of an empty one."""
    ids = [stats.chunk_id for stats in given]
    connection.execute(
        delete(memory_tables.chunk_stats).where(*_is(_S, collection, tenant), _S.chunk_id.in_(ids))
    )
    rows = [_row(stats) | _at(collection, tenant) for stats in given if stats.tried]
    if rows:
        connection.execute(insert(memory_tables.chunk_stats), rows)


def forget_stats(
    connection: Connection, collection: str, tenant: str, which: ColumnElement[bool]
) -> int:
    """Forget chunks of a place that this transaction has locked; their outcomes count no more."""
    mine = [*_is(_S, collection, tenant), which]
    of_place = select(_O.outcome_id).where(*_is(_O, collection, tenant))
    connection.execute(
        update(memory_tables.outcome_chunks)
        .where(
            _OC.chunk_id.in_(select(_S.chunk_id).where(*mine)),
            _OC.outcome_id.in_(of_place),
        )
        .values(counted_as=None)
    )
    return connection.execute(delete(memory_tables.chunk_stats).where(*mine)).rowcount


def stats_of(row: Any) -> ChunkStats:
    """A chunk's memory from its row, whose columns are those of _HOT, or all."""
    chunk_id, document_id, *counts, intents, questions, total = row[: len(_HOT)]
    useful, useless, last_useful_at, utility, utility_at = counts
    return ChunkStats(
        chunk_id,
        document_id,
        useful,
        useless,
        last_useful_at,
        utility,
        utility_at,
        intents,
        row.entities if len(row) > len(_HOT) else {},
        questions,
        None if total is None else np.frombuffer(total, np.int64),
    )


def _row(stats: ChunkStats) -> dict[str, Any]:
    total = stats.question_sum
    return stats.__dict__ | {
        "intents": dict(stats.intents),
        "entities": dict(stats.entities),
        "question_sum": None if total is None else total.tobytes(),
    }


def _at(collection: str, tenant: str) -> dict[str, str]:
    return {"collection": collection, "tenant": tenant}


def _is(columns: Any, collection: str, tenant: str) -> list[ColumnElement[bool]]:
    return [columns.collection == collection, columns.tenant == tenant]


def _mean(vectors: Sequence[Vector]) -> Vector | None:
    """Of the unit vectors among them that are as long as the first."""
    if not vectors:
        return None
    same = np.stack([v for v in vectors if v.shape == vectors[0].shape])
    lengths = np.maximum(np.linalg.norm(same, axis=1, keepdims=True), 1e-12)
    mean: Vector = (same / lengths).mean(axis=0).astype(np.float32)
    return mean
