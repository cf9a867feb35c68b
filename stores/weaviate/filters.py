"""Filters in Weaviate's own language, over the properties that store property terms.

Each filter is exact. A filter names no property that no chunk has: Weaviate refuses an unknown
property.
"""

from collections.abc import Container, Iterable
from dataclasses import replace
from itertools import groupby
from typing import cast

from weaviate.classes.query import Filter
from weaviate.collections.classes.filters import FilterReturn

from callslip.errors import InvalidFilter
from callslip.stores.properties.checks import MAX_TEXT_BYTES
from callslip.stores.properties.filters import COMPLEMENTS, Condition, Where
from callslip.stores.properties.terms import TEXT, PropertyTerm, property_term
from callslip.stores.weaviate.values import property_at, stored_value, write_text

Clause = FilterReturn | bool
"""A filter, or its result if that is the same for every chunk."""


def translate(where: Where, known: Container[str]) -> Clause:
    """Translate a filter over the properties in `known`.

    Raises InvalidFilter for a pattern that is longer than any text.
    """
    every = [_condition(condition, known) for condition in where.every]
    if where.some:
        every.append(_any(_condition(condition, known) for condition in where.some))
    return _all(every)


def needed(where: Where) -> set[str]:
    """The properties that a filter uses."""
    return {at for condition in where for at in _properties(condition)}


def _properties(condition: Condition) -> set[str]:
    return {property_at(item.mark, item.name) for item in _items(condition)}


def _items(condition: Condition) -> list[PropertyTerm]:
    if condition.operator == "~":
        return [PropertyTerm(TEXT, condition.prop, str(condition.value))]
    listed = condition.operator in ("@", "contains")
    return [property_term(condition.prop, value, listed=listed) for value in condition.values]


def _condition(condition: Condition, known: Container[str]) -> Clause:
    if positive := COMPLEMENTS.get(condition.operator):
        match = _condition(replace(condition, operator=positive), known)
        return not match if isinstance(match, bool) else Filter.not_(match)
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
                    return by.greater_than(stored_value(item))
                case ">=":
                    return by.greater_or_equal(stored_value(item))
                case "<":
                    return by.less_than(stored_value(item))
                case "<=":
                    return by.less_or_equal(stored_value(item))
                case _:
                    return by.like(pattern)


def _one_of(items: Iterable[PropertyTerm], known: Container[str]) -> Clause:
    """One clause for each property: a list of values has one type."""
    at = sorted((property_at(item.mark, item.name), stored_value(item)) for item in items)
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
