"""Filters in Chroma's own language, over metadata keys that are `mark:name` of an atom."""

from collections.abc import Sequence
from itertools import groupby

from stores.atoms import Atom, atom
from stores.filters import Condition, Where

ChromaWhere = dict[str, object]

_RANGES = {">": "$gt", ">=": "$gte", "<": "$lt", "<=": "$lte"}


def key(item: Atom) -> str:
    """The metadata key of an atom; no key of ours has a colon."""
    return f"{item.mark}:{item.name}"


def translate(where: Where) -> ChromaWhere | None:
    """Write a filter for Chroma; None where it uses `~`, which Chroma does not know."""
    if any(condition.operator == "~" for condition in where):
        return None
    parts = [_condition(condition) for condition in where.every]
    if where.some:
        parts.append(_join("$or", [_condition(condition) for condition in where.some]))
    return _join("$and", parts)


def _condition(condition: Condition) -> ChromaWhere:
    name = condition.prop
    match condition.operator:
        case "==" | "in":
            return _join("$or", _by_type(condition, "$in"))
        case "!=" | "not-in":
            return _join("$and", _by_type(condition, "$nin"))  # true where the key is missing
        case "@" | "contains":
            items = [atom(name, value, listed=True) for value in condition.values]
            return _join("$or", [{key(item): {"$contains": item.value}} for item in items])
        case operator:
            item = atom(name, condition.values[0])
            return {key(item): {_RANGES[operator]: item.value}}


def _by_type(condition: Condition, operator: str) -> list[ChromaWhere]:
    """One clause for each type of value: Chroma takes lists of one type."""
    items = sorted((atom(condition.prop, value) for value in condition.values), key=key)
    return [
        {typed: {operator: [item.value for item in group]}} for typed, group in groupby(items, key)
    ]


def _join(operator: str, parts: Sequence[ChromaWhere]) -> ChromaWhere:
    """Combine clauses; Chroma refuses to combine a single one."""
    return parts[0] if len(parts) == 1 else {operator: list(parts)}
