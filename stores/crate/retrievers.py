"""Runs the three queries, so that each page is as full as possible and in the right order."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from callslip.stores.crate import queries
from callslip.stores.crate.connection import Connection, Sql
from callslip.stores.crate.rows import indexed
from callslip.stores.crate.tables import vector_column
from callslip.stores.fusion import Candidate, RetrieverScore
from callslip.stores.metrics import Metric
from callslip.stores.records import CollectionSchema, RetrieverHit, Vector

KNN_LIMIT = 1000
"""For a longer page, rows are compared one by one: the graph is not made for it."""

CANDIDATES = 200
CANDIDATES_FILTERED = 1000
"""The least number of rows that the index returns: a filter removes some of them."""


class Searched(Protocol):
    """A table of chunks: its schema, its name in SQL, and the column with the chunk's id."""

    @property
    def schema(self) -> CollectionSchema: ...

    @property
    def table(self) -> str: ...

    @property
    def key(self) -> str: ...


Best = Callable[[int, Sql | None], Sql]
"""Returns the statement for the best n rows of the keyword retriever that match a condition."""


def nearest(
    connection: Connection,
    at: Searched,
    vector: Vector,
    limit: int,
    condition: Sql | None,
    vector_name: str,
) -> list[RetrieverHit]:
    """The nearest rows that match, best first, ties by id.

    CrateDB filters the results of its index and breaks ties arbitrarily. If too few rows remain, or
    the limit cuts through a tie, every row that matches is compared: then the rows that match are
    few, or many rows are at the same distance.
    """
    column, query = _compared(at, vector, vector_name)
    metric = at.schema.vector(vector_name).metric

    def run(count: int, candidates: int) -> list[list[Any]]:
        return connection.run(
            queries.semantic(
                at.table, column, query, count, condition, candidates=candidates, key=at.key
            )
        )

    if limit <= KNN_LIMIT:
        rows = run(limit + 1, _candidates(limit + 1, condition))
        if len(rows) > limit and rows[limit][1] < rows[limit - 1][1]:
            return _hits(rows[:limit], metric)
    return _hits(run(limit, 0), metric)


def keyword(connection: Connection, best: Sql) -> list[RetrieverHit]:
    """The best rows by BM25, best first, ties by id."""
    rows = connection.run(best)
    return [RetrieverHit(id_, queries.bm25(score)) for id_, score in rows]


def fused(
    connection: Connection,
    at: Searched,
    vector: Vector,
    best: Best,
    pool: int,
    condition: Sql | None,
    vector_name: str,
    horizon: float | None,
) -> list[Candidate]:
    """The hits of both retrievers, at most `pool` rows each, fused by CrateDB.

    A row farther than `horizon` is a hit of neither retriever.
    """
    column, query = _compared(at, vector, vector_name)
    metric = at.schema.vector(vector_name).metric
    if horizon is not None:
        squared = 2 * horizon if metric == "cosine" else horizon
        condition = queries.both([condition, queries.within(column, query, squared)])
    words = best(pool, condition)
    rows: list[list[Any]] = []
    for candidates in (_candidates(pool, condition), 0):
        near = queries.semantic(
            at.table, column, query, pool, condition, candidates=candidates, key=at.key
        )
        rows = connection.run(queries.hybrid(words, near))
        if sum(row[2] is not None for row in rows) >= pool:
            break
    return [_candidate(row, metric) for row in rows]


def _compared(at: Searched, vector: Vector, vector_name: str) -> tuple[str, Vector]:
    """The column that is compared with a query's vector, and the vector as the index needs it."""
    return vector_column(at.schema, vector_name), indexed(vector, at.schema, vector_name)


def _candidates(wanted: int, condition: Sql | None) -> int:
    return max(2 * wanted, CANDIDATES_FILTERED if condition else CANDIDATES)


def _hits(rows: Sequence[Sequence[Any]], metric: Metric) -> list[RetrieverHit]:
    return [RetrieverHit(id_, _score(similarity, metric)) for id_, similarity in rows]


def _candidate(row: Sequence[Any], metric: Metric) -> Candidate:
    id_, fused_score, vector_rank, similarity, keyword_rank, raw = row
    return Candidate(
        id_,
        fused_score,
        None if vector_rank is None else RetrieverScore(vector_rank, _score(similarity, metric)),
        None if keyword_rank is None else RetrieverScore(keyword_rank, queries.bm25(raw)),
    )


def _score(similarity: float, metric: Metric) -> float:
    squared = queries.squared_distance(similarity)
    return 1 - squared / 2 if metric == "cosine" else -squared
