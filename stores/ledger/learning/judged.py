"""Reads searches with the hits that users or the validator judged useful, to fit weights."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import Connection, and_, case, exists, func, or_, select

from callslip.readers import Reader
from callslip.stores.ledger.base import memory_tables
from callslip.stores.ledger.base.database import Database
from callslip.stores.ledger.learning.searches import unpacked
from callslip.stores.records import Vector

_E, _Q = memory_tables.retrieval_events.c, memory_tables.query_profiles.c
_O, _OC = memory_tables.outcomes.c, memory_tables.outcome_chunks.c
_RECORDED = (_E.hits, _E.basis, _E.packed)

TOGETHER = 200
"""Searches per page of a read."""


@dataclass(frozen=True)
class JudgedSearch:
    """A search with the ranks, from 1, of the hits that helped.

    `basis` has the features of the first `hits` hits and then of candidates that were not shown.
    `settings` has the ranking parameters, including explored ones. `vector` is the question's
    vector, or None.
    """

    question: str
    vector: Vector | None
    settings: Mapping[str, Any]
    hits: int
    basis: Sequence[Sequence[float | None]]
    helped: Sequence[int]

    @property
    def explored(self) -> tuple[int, float] | None:
        """Rank and probability of the explored chunk; older versions stored the rank as `place`."""
        stored = self.settings["explored"]
        return stored and (stored.get("position") or stored["place"], stored["probability"])


class JudgedSearches:
    """Reads judged searches in bounded memory."""

    def __init__(self, database: Database, reader: Reader | None = None) -> None:
        self._database, self._reader = database, reader

    def newest(self, collection: str, limit: int) -> Iterator[JudgedSearch]:
        """The newest judged searches of a collection over all its tenants, at most `limit`.

        A hit helped if more counted outcomes are for it than against it. Withdrawn outcomes,
        repeated outcomes of one user and approvals without agreement do not count.
        """
        last: tuple[float, str] | None = None
        while limit > 0:
            with self._database.snapshot() as connection:
                rows = connection.execute(_page(collection, last)).all()
                helped = _helped(connection, [row.trace_id for row in rows])
            for row in rows:
                if self._reader and row.settings.get("owner") != self._reader.owner:
                    continue
                recorded = unpacked(row)
                hits = enumerate(recorded["hits"], 1)
                ranks = [rank for rank, hit in hits if hit in helped[row.trace_id]]
                if ranks and limit > 0:
                    limit -= 1
                    yield _search(row, recorded, ranks)
            if len(rows) < TOGETHER:
                return
            last = rows[-1].at, rows[-1].trace_id


def _page(collection: str, last: tuple[float, str] | None) -> Any:
    good = exists().where(
        _O.trace_id == _E.trace_id, _O.verdict != "unhelpful", _O.withdrawn_at.is_(None)
    )
    query = (
        select(_E.trace_id, _E.at, _E.profile_id, _E.settings, *_RECORDED, _Q.vector)
        .join(memory_tables.query_profiles, _Q.profile_id == _E.profile_id)
        .where(_E.collection == collection, good)
        .order_by(_E.at.desc(), _E.trace_id.desc())
        .limit(TOGETHER)
    )
    if last is None:
        return query
    at, trace_id = last
    return query.where(or_(_E.at < at, and_(_E.at == at, _E.trace_id < trace_id)))


def _helped(connection: Connection, trace_ids: Sequence[str]) -> Mapping[str, set[str]]:
    """The chunks that helped, by search."""
    speaks = func.sum(case((_O.verdict == "unhelpful", -1), else_=1))
    query = (
        select(_O.trace_id, _OC.chunk_id)
        .join(memory_tables.outcome_chunks, _OC.outcome_id == _O.outcome_id)
        .where(_O.trace_id.in_(trace_ids), _OC.counts.is_(True))
        .group_by(_O.trace_id, _OC.chunk_id)
        .having(speaks > 0)
    )
    chunks = defaultdict[str, set[str]](set)
    for row in connection.execute(query):
        chunks[row.trace_id].add(row.chunk_id)
    return chunks


def _search(row: Any, recorded: Mapping[str, Any], ranks: Sequence[int]) -> JudgedSearch:
    vector = None if row.vector is None else np.frombuffer(row.vector, np.float32)
    hits, basis = len(recorded["hits"]), recorded["basis"]
    return JudgedSearch(row.profile_id, vector, row.settings, hits, basis, ranks)
