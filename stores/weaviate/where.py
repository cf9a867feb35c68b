"""Filters in Weaviate's own language, over the properties that atoms lie in.

Each is exact. What no chunk has is not sent: Weaviate refuses a property that it does not know.
"""

from collections.abc import Container, Iterable
from dataclasses import replace
from itertools import groupby
from typing import cast

from weaviate.classes.query import Filter
from weaviate.collections.classes.filters import FilterReturn

from callslip.errors import InvalidFilter
from stores.atoms import TEXT, Atom, atom
from stores.checks import MAX_TEXT_BYTES
from stores.filters import COMPLEMENTS, Condition, Where
from stores.weaviate.values import held, property_at, write_text

Clause = FilterReturn | bool
"""A filter, or what it says of every chunk alike."""


def translate(where: Where, known: Container[str]) -> Clause:
    """Write a filter over the properties that are known.

    Raises InvalidFilter for a pattern that is longer than any text.
    """
    every = [_condition(condition, known) for condition in where.every]
    if where.some:
        every.append(_any(_condition(condition, known) for condition in where.some))
    return _all(every)


def needed(where: Where) -> set[str]:
    """The properties that a filter asks for."""
    return {at for condition in where for at in _properties(condition)}


def _properties(condition: Condition) -> set[str]:
    return {property_at(item.mark, item.name) for item in _items(condition)}


def _items(condition: Condition) -> list[Atom]:
    if condition.operator == "~":
        return [Atom(TEXT, condition.prop, str(condition.value))]
    listed = condition.operator in ("@", "contains")
    return [atom(condition.prop, value, listed=listed) for value in condition.values]


def _condition(condition: Condition, known: Container[str]) -> Clause:
    if positive := COMPLEMENTS.get(condition.operator):
        found = _condition(replace(condition, operator=positive), known)
        return not found if isinstance(found, bool) else Filter.not_(found)
    match condition.operator:
        case "==" | "in" | "@" | "contains":
            return _one_of(_items(condition), known)
        case operator:
            (item,) = _items(condition)
            at = property_at(item.mark, item.name)
            pattern = _pattern(condition) if operator == "~" else ""
            if at not in known:
                return False
            by = Filter.by_property(at)
            match operator:
                case ">":
                    return by.greater_than(held(item))
                case ">=":
                    return by.greater_or_equal(held(item))
                case "<":
                    return by.less_than(held(item))
                case "<=":
                    return by.less_or_equal(held(item))
                case _:
                    return by.like(pattern)


def _one_of(items: Iterable[Atom], known: Container[str]) -> Clause:
    """One clause for each property: a list of values has one type."""
    at = sorted((property_at(item.mark, item.name), held(item)) for item in items)
    clauses: list[Clause] = []
    for prop, group in groupby(at, lambda pair: pair[0]):
        if prop in known:
            values = cast(list[str], list(dict.fromkeys(value for _, value in group)))
            clauses.append(Filter.by_property(prop).contains_any(values))
    return _any(clauses)


def _pattern(condition: Condition) -> str:
    text = str(condition.value)
    if len(text.encode()) > MAX_TEXT_BYTES:
        raise InvalidFilter(
            f"The pattern for {condition.prop!r} is too long.", hint="Use less text."
        )
    while "**" in text:
        text = text.replace("**", "*")
    return f"={write_text(text)}="


def _all(clauses: Iterable[Clause]) -> Clause:
    parts = [clause for clause in clauses if clause is not True]
    if not parts or any(part is False for part in parts):
        return not parts
    return Filter.all_of(cast(list[FilterReturn], parts))


def _any(clauses: Iterable[Clause]) -> Clause:
    parts = [clause for clause in clauses if clause is not False]
    if not parts or any(part is True for part in parts):
        return bool(parts)
    return Filter.any_of(cast(list[FilterReturn], parts))
