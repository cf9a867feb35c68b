"""Reads and changes the chunk memory in the ledger: for searches, reports, exports and deletion.

A transaction that changes the memory of a scope, which is a collection or one of its tenants, first
increments `changes` in the scope's row, and thereby locks the row. Caches of searches also compare
`changes`.
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
    exists,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite

from callslip.readers import Reader
from callslip.stores.chunk_stats import WEEK, ChunkStats, decay
from callslip.stores.ledger.base import memory_tables, schema
from callslip.stores.ledger.base.database import Database
from callslip.stores.ledger.base.readable import of_readable
from callslip.stores.ledger.documents.chunks import IDS_PER_STATEMENT, THERE
from callslip.stores.records import Vector

_S, _P = memory_tables.chunk_stats.c, memory_tables.memory_scopes.c
_Q = memory_tables.query_profiles.c
_O, _OC = memory_tables.outcomes.c, memory_tables.outcome_chunks.c
_D, _C = schema.documents.c, schema.chunks.c

PER_TRANSACTION = 500
"""Rows that one transaction changes; other writers can run between two transactions."""

CENTRE_OF = 256
"""The number of newest questions whose mean vector is a centre."""

_HOT = (
    *(_S.chunk_id, _S.document_id, _S.useful, _S.useless, _S.last_useful_at),
    *(_S.utility, _S.utility_at, _S.intents, _S.questions, _S.question_sum),
)  # without the entities, which may be many and which no bonus uses

# Statements of the hot path are built once: building one costs more than running it.
_ALL = select(*_HOT, _S.entities)
_OF = select(*_HOT).where(
    _S.collection == bindparam("collection"),
    _S.tenant == bindparam("tenant"),
    _S.chunk_id.in_(bindparam("chunk_ids", expanding=True)),
)
_SCOPE = select(_P.changes, _P.centre, _P.questions).where(
    _P.collection == bindparam("collection"), _P.tenant == bindparam("tenant")
)


@dataclass(frozen=True)
class MemoryScope:
    """The state of the chunk memory of a collection or a tenant.

    `changes` grows with each change of it. `centre` is the mean of `questions` questions, shape
    (dimension,), or None while there are too few.
    """

    changes: int = 0
    centre: Vector | None = None
    questions: int = 0


@dataclass(frozen=True)
class MemorySums:
    """The totals of the chunk memory of a scope."""

    chunks: int
    useful: int
    useless: int


class Memory:
    """Reads and changes the chunk memory: the outcomes of earlier searches, by chunk."""

    def __init__(self, database: Database, reader: Reader | None = None) -> None:
        self._database, self._reader = database, reader

    def scope(self, collection: str, tenant: str = "") -> MemoryScope:
        """The state of a scope's chunk memory; zeros if there is none."""
        with self._database.reading() as connection:
            row = connection.execute(_SCOPE, _at(collection, tenant)).one_or_none()
        if row is None:
            return MemoryScope()
        centre = None if row.centre is None else np.frombuffer(row.centre, np.float32)
        return MemoryScope(row.changes, centre, row.questions)

    def of(
        self, collection: str, chunk_ids: Sequence[str], *, tenant: str = ""
    ) -> dict[str, ChunkStats]:
        """The statistics of these chunks without their entities; omits unknown chunks."""
        stats: dict[str, ChunkStats] = {}
        with self._database.reading() as connection:
            for start in range(0, len(chunk_ids), IDS_PER_STATEMENT):
                some = list(chunk_ids[start : start + IDS_PER_STATEMENT])
                rows = connection.execute(_OF, _at(collection, tenant) | {"chunk_ids": some})
                stats.update((row.chunk_id, stats_of(row)) for row in rows)
        return stats

    def best(
        self, collection: str, *, tenant: str = "", limit: int = 100, after: str = ""
    ) -> list[ChunkStats]:
        """A page of chunks by utility, greatest first; the next page begins `after` its last id.

        Compares the utilities as stored, at most a week old: they all decay at the same rate.
        """
        mine = [*_is(_S, collection, tenant), of_readable(_S.document_id, self._reader)]
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
        """The totals of the scope's chunk memory."""
        query = select(
            func.count(),
            func.coalesce(func.sum(_S.useful), 0),
            func.coalesce(func.sum(_S.useless), 0),
        ).where(*_is(_S, collection, tenant), of_readable(_S.document_id, self._reader))
        with self._database.reading() as connection:
            return MemorySums(*connection.execute(query).one())

    def is_known(self, collection: str, *, tenant: str = "") -> bool:
        """Whether the reader may read a passage of the scope that has memory; true of no reader."""
        if self._reader is None:
            return True
        mine = (*_is(_S, collection, tenant), of_readable(_S.document_id, self._reader))
        with self._database.reading() as connection:
            return bool(connection.scalar(select(exists().where(*mine))))

    def page(
        self, collection: str, *, tenant: str = "", after: str = "", limit: int = PER_TRANSACTION
    ) -> list[ChunkStats]:
        """A page of the complete memory in order of chunk ids, for an export."""
        query = (
            _ALL.where(*_is(_S, collection, tenant), _S.chunk_id > after)
            .where(of_readable(_S.document_id, self._reader))
            .order_by(_S.chunk_id)
            .limit(limit)
        )
        with self._database.reading() as connection:
            return [stats_of(row) for row in connection.execute(query)]

    def take_in(self, collection: str, replacing: Iterable[ChunkStats], *, tenant: str = "") -> int:
        """Replace the memory of these chunks by exported memory. Returns the number of chunks.

        Ignores chunks that the scope does not have. Outcomes that counted for the replaced memory
        can no longer be withdrawn.
        """
        by_id = {stats.chunk_id: stats for stats in replacing}
        ids, taken = sorted(by_id), 0
        for start in range(0, len(ids), PER_TRANSACTION):
            some = ids[start : start + PER_TRANSACTION]
            with self._database.writing() as connection:
                lock_scope(self._database, connection, collection, tenant)
                owners = owners_of(connection, collection, tenant, some)
                forget_stats(connection, collection, tenant, list(owners))
                put_stats(
                    connection,
                    collection,
                    tenant,
                    [replace(by_id[i], document_id=owner) for i, owner in sorted(owners.items())],
                )
            taken += len(owners)
        return taken

    def reset(self, collection: str, *, tenant: str = "") -> int:
        """Delete the memory of a scope. Returns the number of chunks. Recorded searches stay.

        Outcomes that counted no longer count, and can be recorded again.
        """
        with self._database.writing() as connection:
            lock_scope(self._database, connection, collection, tenant)
            return forget_stats(connection, collection, tenant)

    def fade(self, half_life_weeks: float, now: float | None = None) -> int:
        """Apply the decay to utilities stored a week ago or earlier. Returns the number of rows.

        Searches compute the decay themselves; the stored decay keeps the order of `best` correct.
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
                _S.utility_at == bindparam("of_utility_at"),  # otherwise an outcome came between
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
        """Compute the mean of each scope's newest questions again. Returns the number of scopes.

        A scope with fewer than `fewest` questions has no mean. Questions of another dimension are
        ignored.
        """
        with self._database.reading() as connection:
            scopes = connection.execute(select(_P.collection, _P.tenant)).all()
        for scope in scopes:
            newest = (
                select(_Q.vector)
                .where(*_is(_Q, scope.collection, scope.tenant), _Q.vector.is_not(None))
                .order_by(_Q.last_at.desc())
                .limit(CENTRE_OF)
            )
            with self._database.reading() as connection:
                vectors = [np.frombuffer(v, np.float32) for v in connection.scalars(newest)]
            mean = _mean(vectors)
            enough = mean is not None and len(vectors) >= fewest
            with self._database.writing() as connection:
                connection.execute(
                    update(memory_tables.memory_scopes)
                    .where(*_is(_P, scope.collection, scope.tenant))
                    .values(
                        centre=mean.tobytes() if mean is not None and enough else None,
                        questions=len(vectors) if enough else 0,
                    )
                )
        return len(scopes)


def lock_scope(database: Database, connection: Connection, collection: str, tenant: str) -> None:
    """Lock a scope until the transaction ends, and increment its `changes`."""
    made: Callable[[Table], Any] = sqlite.insert if database.is_sqlite else postgresql.insert
    connection.execute(
        made(memory_tables.memory_scopes)
        .values(**_at(collection, tenant), changes=0)
        .on_conflict_do_nothing()
    )
    connection.execute(
        update(memory_tables.memory_scopes)
        .where(*_is(_P, collection, tenant))
        .values(changes=_P.changes + 1)
    )


def owners_of(
    connection: Connection, collection: str, tenant: str, chunk_ids: Sequence[str]
) -> dict[str, str]:
    """The document id of each of these chunks that belongs to a document of the scope, by chunk id.

    Omits deleted documents, and locks the others against deletion until the transaction ends, so
    that no statistics are written for a document whose memory is deleted already.
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
    """The complete statistics of these chunks, read within a transaction."""
    query = _ALL.where(*_is(_S, collection, tenant), _S.chunk_id.in_(list(chunk_ids)))
    return {row.chunk_id: stats_of(row) for row in connection.execute(query)}


def put_stats(
    connection: Connection, collection: str, tenant: str, replacing: Sequence[ChunkStats]
) -> None:
    """Replace the statistics of chunks; a chunk without outcomes has no row."""
    ids = [stats.chunk_id for stats in replacing]
    connection.execute(
        delete(memory_tables.chunk_stats).where(*_is(_S, collection, tenant), _S.chunk_id.in_(ids))
    )
    rows = [_row(stats) | _at(collection, tenant) for stats in replacing if stats.tried]
    if rows:
        connection.execute(insert(memory_tables.chunk_stats), rows)


def forget_stats(
    connection: Connection, collection: str, tenant: str, chunk_ids: Sequence[str] | None = None
) -> int:
    """Delete the memory of chunks in a locked scope, or of all; their outcomes no longer count.

    Returns the number of chunks with memory.
    """
    mine, outcomes = [*_is(_S, collection, tenant)], []
    if chunk_ids is not None:
        mine.append(_S.chunk_id.in_(chunk_ids))
        outcomes.append(_OC.chunk_id.in_(chunk_ids))
    of_scope = select(_O.outcome_id).where(*_is(_O, collection, tenant))
    connection.execute(
        update(memory_tables.outcome_chunks)
        .where(*outcomes, _OC.outcome_id.in_(of_scope))
        .values(counted_as=None, counts=False)
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
    """The mean of the unit vectors that have the dimension of the first vector."""
    if not vectors:
        return None
    same = np.stack([v for v in vectors if v.shape == vectors[0].shape])
    lengths = np.maximum(np.linalg.norm(same, axis=1, keepdims=True), 1e-12)
    mean: Vector = (same / lengths).mean(axis=0).astype(np.float32)
    return mean
