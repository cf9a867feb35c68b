"""Filters: each condition is a statement that finds atoms, and a mask of the chunks with them."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce

import numpy as np
import numpy.typing as npt

from callslip.errors import InvalidFilter
from stores.atoms import TEXT, atom
from stores.checks import MAX_TEXT_BYTES
from stores.filters import COMPLEMENTS, Condition, Where
from stores.tfidf.table import Keys, integers

Mask = npt.NDArray[np.bool_]

_SAME = "SELECT id, value FROM atoms WHERE name = ? AND mark = ? AND value = ?"
_FROM = "SELECT id, value FROM atoms WHERE name = ? AND mark = ? AND value >= ? ORDER BY value"
_RANGES = {
    sign: f"SELECT id, value FROM atoms WHERE name = ? AND mark = ? AND value {sign} ?"  # noqa: S608
    for sign in (">", ">=", "<", "<=")
}


@dataclass(frozen=True)
class Clause:
    """A condition as a statement with the values of each time it is run.

    `like` are the parts between the stars of a pattern; `negated` turns the result around.
    """

    sql: str
    runs: tuple[tuple[object, ...], ...]
    like: tuple[str, ...] = ()
    negated: bool = False


@dataclass(frozen=True)
class Clauses:
    """A filter's clauses: all of `every`, and one of `some` where there are any."""

    every: tuple[Clause, ...]
    some: tuple[Clause, ...]


def translate(where: Where) -> Clauses:
    """Write a filter as statements; InvalidFilter for a pattern longer than any text."""
    return Clauses(
        tuple(_clause(condition) for condition in where.every),
        tuple(_clause(condition) for condition in where.some),
    )


def mask(connection: sqlite3.Connection, clauses: Clauses, keys: Keys) -> Mask:
    """Which of the keys, which ascend, belong to chunks that pass."""

    def one(clause: Clause) -> Mask:
        held = _among(keys, _holders(connection, clause))
        return ~held if clause.negated else held

    def both(combine: Callable[[Mask, Mask], Mask], masks: Iterator[Mask], start: bool) -> Mask:
        return reduce(combine, masks, np.full(len(keys), start))

    passing = both(np.logical_and, (one(clause) for clause in clauses.every), True)
    if clauses.some:
        passing &= both(np.logical_or, (one(clause) for clause in clauses.some), False)
    return passing


def is_like(parts: tuple[str, ...], text: str) -> bool:
    """Match text with the parts between the stars of a pattern, in linear time."""
    first, *middle, last = parts if len(parts) > 1 else (parts[0], "")
    if len(parts) == 1:
        return text == first
    at, end = len(first), len(text) - len(last)
    if at > end or not text.startswith(first) or not text.endswith(last):
        return False
    for part in middle:
        found = text.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


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
    items = (atom(name, value, listed=listed) for value in condition.values)
    runs = tuple((name, item.mark, item.value) for item in items)
    positive = COMPLEMENTS.get(operator)
    return Clause(_RANGES.get(positive or operator, _SAME), runs, negated=positive is not None)


def _holders(connection: sqlite3.Connection, clause: Clause) -> Keys:
    """The keys of the chunks that hold an atom which the clause finds, in no order."""
    atoms: list[int] = []
    for values in clause.runs:
        for id_, value in connection.execute(clause.sql, values):
            if clause.like and not value.startswith(clause.like[0]):
                break  # they come in order: no later one does
            if not clause.like or is_like(clause.like, value):
                atoms.append(id_)
    if not atoms:
        return np.empty(0, np.int64)
    return integers(
        connection,
        "SELECT group_concat(chunk) FROM held WHERE atom IN (SELECT value FROM json_each(?))",
        (json.dumps(atoms),),
    )


def _among(keys: Keys, found: Keys) -> Mask:
    held = np.zeros(len(keys), np.bool_)
    at = np.searchsorted(keys, found)
    inside = at < len(keys)
    at, found = at[inside], found[inside]
    held[at[keys[at] == found]] = True
    return held
