"""The three queries of CrateDB's hybrid search specification: keyword, semantic, hybrid."""

from collections.abc import Sequence

import numpy as np

from callslip.stores.crate.connection import Sql
from callslip.stores.crate.rows import words as joined
from callslip.stores.records import Vector

RRF_K = 60
"""The constant of reciprocal rank fusion that the specification names."""

MAX_DISTINCT_TERMS = 1024
MAX_TERMS = 7000
"""A search uses only this many terms of a query, the first ones. Lucene accepts 8192 clauses."""

_BOOST = 2.0**80
"""The boost of the keyword query: filters on text add their own BM25, which rounding then removes.

The boost is a power of two, so that it changes only the exponent of a score.
"""

_K1 = 1.2
"""The parameter k1 of BM25. Lucene omits the constant factor k1 + 1."""


TITLE_BOOST = 2.0
"""The weight of a word in the title, relative to the content, if both are searched at once."""


def keyword(table: str, terms: str, limit: int, where: Sql | None) -> Sql:
    """The statement for the ids and raw scores of the best rows by BM25 over analyzed terms."""
    match = Sql(f'MATCH(("terms" {_BOOST!r}), ?)', (_searched(terms),))
    return _best(table, "chunk_id", match, limit, where)


def words(table: str, key: str, text: str, limit: int, where: Sql | None) -> Sql:
    """As `keyword`, for a text, which the analyzers of the specified columns split into words."""
    columns = f'"title_fs" {TITLE_BOOST * _BOOST!r}, "content_fs" {_BOOST!r}'
    return _best(table, key, Sql(f"MATCH(({columns}), ?)", (text,)), limit, where)


def bm25(score: float) -> float:
    """The BM25 score for a raw score of `keyword` or `words`."""
    return score / _BOOST * (_K1 + 1)


def semantic(
    table: str,
    column: str,
    vector: Vector,
    limit: int,
    where: Sql | None,
    *,
    candidates: int,
    key: str = "chunk_id",
) -> Sql:
    """The statement for the ids and similarities, 1 / (1 + d²), of the nearest rows.

    The index returns `candidates` rows, of which only those that match count, possibly fewer than
    the limit. With 0 candidates, every row that matches is compared.
    """
    near = Sql(f'"{column}" IS NOT NULL')
    if candidates:
        near = Sql(f'KNN_MATCH("{column}", ?, ?)', (vector, candidates))
    condition = _all(near, where)
    return Sql(
        f'SELECT "{key}" AS "chunk_id", VECTOR_SIMILARITY("{column}", ?) AS "score" FROM {table}'
        f' WHERE {condition.text} ORDER BY "score" DESC, "chunk_id" LIMIT ?',
        (vector, *condition.args, limit),
    )


def hybrid(bm25_hits: Sql, vector_hits: Sql) -> Sql:
    """The statement for reciprocal rank fusion; a hit of only one retriever counts too.

    The columns are the id, the fused score, the rank and score in the vector retriever, and the
    rank and score in the keyword retriever.
    """
    retrievers = ("bm25", "vector")
    shares = " + ".join(f'COALESCE(1.0 / ({name}."rank" + {RRF_K}), 0.0)' for name in retrievers)
    return Sql(
        'SELECT COALESCE(bm25."chunk_id", vector."chunk_id") AS "chunk_id",'
        f' TRUNC({shares}, 6) AS "final_rank",'
        ' vector."rank", vector."score", bm25."rank", bm25."score"'
        f" FROM ({_ranked(bm25_hits)}) AS bm25"
        f" FULL OUTER JOIN ({_ranked(vector_hits)}) AS vector"
        ' ON bm25."chunk_id" = vector."chunk_id"'
        ' ORDER BY "final_rank" DESC, "chunk_id"',
        (*bm25_hits.args, *vector_hits.args),
    )


def within(column: str, vector: Vector, squared: float) -> Sql:
    """The condition that a row's squared distance to the vector is at most `squared`."""
    return Sql(
        f'VECTOR_SIMILARITY("{column}", ?) >= ?',
        (vector, (1 - 1e-6) / (1 + max(squared, 0.0)) if squared > -1e-6 else 2.0),
    )


def both(conditions: Sequence[Sql | None]) -> Sql | None:
    """All conditions that are not None, joined by AND; None if there is none."""
    present = [condition for condition in conditions if condition]
    return _all(present[0], *present[1:]) if present else None


def squared_distance(similarity: float) -> float:
    """The squared Euclidean distance for a similarity of `semantic`."""
    return 1 / similarity - 1 if similarity > 0 else float(np.inf)


def _best(table: str, key: str, match: Sql, limit: int, where: Sql | None) -> Sql:
    condition = _all(match, where)
    return Sql(
        f'SELECT "{key}" AS "chunk_id", _score AS "score" FROM {table} WHERE {condition.text}'
        ' ORDER BY "score" DESC, "chunk_id" LIMIT ?',
        (*condition.args, limit),
    )


def _ranked(retriever: Sql) -> str:
    order = 'RANK() OVER (ORDER BY "score" DESC, "chunk_id") AS "rank"'
    return f'SELECT "chunk_id", "score", {order} FROM ({retriever.text}) AS leg'


def _all(first: Sql, *others: Sql | None) -> Sql:
    parts = [first, *(other for other in others if other)]
    return Sql(
        " AND ".join(part.text for part in parts),
        tuple(value for part in parts for value in part.args),
    )


def _searched(terms: str) -> str:
    present = terms.split()
    first = set(list(dict.fromkeys(present))[:MAX_DISTINCT_TERMS])
    return joined([term for term in present if term in first][:MAX_TERMS])
