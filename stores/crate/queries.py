"""The three queries of CrateDB's hybrid search specification: keyword, semantic, hybrid."""

from collections.abc import Sequence

import numpy as np

from stores.crate.connection import Sql
from stores.crate.rows import words as joined
from stores.records import Vector

RRF_K = 60
"""The constant of reciprocal rank fusion that the specification names."""

MAX_DISTINCT_TERMS = 1024
MAX_TERMS = 7000
"""Terms of a query that are searched for, the first ones. Lucene takes 8192 clauses in all."""

_BOOST = 2.0**80
"""On the keyword query: filters on text add their own BM25, which the sum then does not notice.

A power of two, so that a score is the same number but for its exponent.
"""

_K1 = 1.2
"""Of BM25; Lucene leaves its constant factor k1 + 1 out."""


TITLE_BOOST = 2.0
"""How much more a word of the title counts where a title and a content are searched at once."""


def keyword(table: str, terms: str, limit: int, where: Sql | None) -> Sql:
    """The ids and raw scores of the best rows by BM25 over analyzed terms."""
    match = Sql(f'MATCH(("terms" {_BOOST!r}), ?)', (_searched(terms),))
    return _best(table, "chunk_id", match, limit, where)


def words(table: str, key: str, text: str, limit: int, where: Sql | None) -> Sql:
    """The same by the words of a text, as the specified columns' own analyzers read it."""
    columns = f'"title_fs" {TITLE_BOOST * _BOOST!r}, "content_fs" {_BOOST!r}'
    return _best(table, key, Sql(f"MATCH(({columns}), ?)", (text,)), limit, where)


def bm25(score: float) -> float:
    """BM25 from a raw score of `keyword`."""
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
    """The ids and similarities, 1 / (1 + d²), of the nearest rows.

    Of so many `candidates` of the index those that match, which may be fewer than the limit; with
    0, every row that matches is compared.
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


def hybrid(bm25_leg: Sql, vector_leg: Sql) -> Sql:
    """Both legs by reciprocal rank fusion; a hit of one leg alone counts too.

    Rows of id, fused score, rank and score in the vector leg, rank and score in the keyword leg.
    """
    legs = ("bm25", "vector")
    shares = " + ".join(f'COALESCE(1.0 / ({leg}."rank" + {RRF_K}), 0.0)' for leg in legs)
    return Sql(
        'SELECT COALESCE(bm25."chunk_id", vector."chunk_id") AS "chunk_id",'
        f' TRUNC({shares}, 6) AS "final_rank",'
        ' vector."rank", vector."score", bm25."rank", bm25."score"'
        f" FROM ({_ranked(bm25_leg)}) AS bm25"
        f" FULL OUTER JOIN ({_ranked(vector_leg)}) AS vector"
        ' ON bm25."chunk_id" = vector."chunk_id"'
        ' ORDER BY "final_rank" DESC, "chunk_id"',
        (*bm25_leg.args, *vector_leg.args),
    )


def within(column: str, vector: Vector, squared: float) -> Sql:
    """The condition that a row is not farther than a squared distance."""
    return Sql(
        f'VECTOR_SIMILARITY("{column}", ?) >= ?',
        (vector, (1 - 1e-6) / (1 + max(squared, 0.0)) if squared > -1e-6 else 2.0),
    )


def both(conditions: Sequence[Sql | None]) -> Sql | None:
    """All of the conditions that there are; None where there is none."""
    given = [condition for condition in conditions if condition]
    return _all(given[0], *given[1:]) if given else None


def squared_distance(similarity: float) -> float:
    """The square of Euclid's distance from what `semantic` gives."""
    return 1 / similarity - 1 if similarity > 0 else float(np.inf)


def _best(table: str, key: str, match: Sql, limit: int, where: Sql | None) -> Sql:
    condition = _all(match, where)
    return Sql(
        f'SELECT "{key}" AS "chunk_id", _score AS "score" FROM {table} WHERE {condition.text}'
        ' ORDER BY "score" DESC, "chunk_id" LIMIT ?',
        (*condition.args, limit),
    )


def _ranked(leg: Sql) -> str:
    order = 'RANK() OVER (ORDER BY "score" DESC, "chunk_id") AS "rank"'
    return f'SELECT "chunk_id", "score", {order} FROM ({leg.text}) AS leg'


def _all(first: Sql, *others: Sql | None) -> Sql:
    parts = [first, *(other for other in others if other)]
    return Sql(
        " AND ".join(part.text for part in parts),
        tuple(value for part in parts for value in part.args),
    )


def _searched(terms: str) -> str:
    given = terms.split()
    first = set(list(dict.fromkeys(given))[:MAX_DISTINCT_TERMS])
    return joined([term for term in given if term in first][:MAX_TERMS])
