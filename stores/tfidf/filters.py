"""Filters: each condition is an SQL statement that selects property terms, and a mask of chunks."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce

import numpy as np
import numpy.typing as npt

from callslip.errors import InvalidFilter
from callslip.stores.properties.checks import MAX_TEXT_BYTES
from callslip.stores.properties.filters import COMPLEMENTS, Condition, Where, is_like
from callslip.stores.properties.terms import TEXT, property_term
from callslip.stores.tfidf.table import Keys, integers

Mask = npt.NDArray[np.bool_]

_SAME = "SELECT id, value FROM atoms WHERE name = ? AND mark = ? AND value = ?"
_FROM = "SELECT id, value FROM atoms WHERE name = ? AND mark = ? AND value >= ? ORDER BY value"
_RANGES = {
    sign: f"SELECT id, value FROM atoms WHERE name = ? AND mark = ? AND value {sign} ?"  # noqa: S608
    for sign in (">", ">=", "<", "<=")
}


@dataclass(frozen=True)
class Clause:
    """A condition as an SQL statement, with the values of each run.

    `like` has the parts between the stars of a pattern; `negated` inverts the result.
    """

    sql: str
    runs: tuple[tuple[object, ...], ...]
    like: tuple[str, ...] = ()
    negated: bool = False


@dataclass(frozen=True)
class Clauses:
    """A filter's clauses: all of `every` hold and, if `some` is not empty, one of `some` holds."""

    every: tuple[Clause, ...]
    some: tuple[Clause, ...]


def translate(where: Where) -> Clauses:
    """Translate a filter. Raises InvalidFilter for a pattern that is longer than any text."""
    return Clauses(
        tuple(_clause(condition) for condition in where.every),
        tuple(_clause(condition) for condition in where.some),
    )


def mask(connection: sqlite3.Connection, clauses: Clauses, keys: Keys) -> Mask:
    """For each key, whether its chunk passes. `keys` must be ascending."""

    def one(clause: Clause) -> Mask:
        mask_of_keys = _among(keys, _holders(connection, clause))
        return ~mask_of_keys if clause.negated else mask_of_keys

    def both(combine: Callable[[Mask, Mask], Mask], masks: Iterator[Mask], start: bool) -> Mask:
        return reduce(combine, masks, np.full(len(keys), start))

    passing = both(np.logical_and, (one(clause) for clause in clauses.every), True)
    if clauses.some:
        passing &= both(np.logical_or, (one(clause) for clause in clauses.some), False)
    return passing


def _clause(condition: Condition) -> Clause:
    name, operator = condition.prop, condition.operator
    if operator == "~":
        first, *rest = str(condition.value).split("*")
        parts = (first, *(part for part in rest[:-1] if part), *rest[-1:])
        if sum(len(part.encode()) for part in parts) > MAX_TEXT_BYTES:
            raise InvalidFilter(
                f"The pattern for {name!r} is longer than {MAX_TEXT_BYTES} bytes,"
                " and so than any text."
            )
        if len(parts) == 1:
            return Clause(_SAME, ((name, TEXT, parts[0]),))
        return Clause(_FROM, ((name, TEXT, parts[0]),), like=parts)
    listed = operator in ("@", "contains")
    items = (property_term(name, value, listed=listed) for value in condition.values)
    runs = tuple((name, item.mark, item.value) for item in items)
    positive = COMPLEMENTS.get(operator)
    return Clause(_RANGES.get(positive or operator, _SAME), runs, negated=positive is not None)


def _holders(connection: sqlite3.Connection, clause: Clause) -> Keys:
    """The keys of the chunks with a property term that the clause selects, in undefined order."""
    property_terms: list[int] = []
    for values in clause.runs:
        for id_, value in connection.execute(clause.sql, values):
            if clause.like and not value.startswith(clause.like[0]):
                break  # the values are ascending: no later one starts with it
            if not clause.like or is_like(clause.like, value):
                property_terms.append(id_)
    if not property_terms:
        return np.empty(0, np.int64)
    return integers(
        connection,
        "SELECT group_concat(chunk) FROM held WHERE atom IN (SELECT value FROM json_each(?))",
        (json.dumps(property_terms),),
    )


def _among(keys: Keys, positions: Keys) -> Mask:
    mask_of_keys = np.zeros(len(keys), np.bool_)
    at = np.searchsorted(keys, positions)
    inside = at < len(keys)
    at, positions = at[inside], positions[inside]
    mask_of_keys[at[keys[at] == positions]] = True
    return mask_of_keys
