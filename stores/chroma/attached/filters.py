"""A filter as a condition of Chroma that each matching row satisfies, and perhaps others.

Chroma knows neither dates, patterns nor exact complements, so the rows are checked afterwards by
the function that defines filters.
"""

import math
from collections.abc import Iterable, Mapping
from datetime import datetime

from callslip.stores.levels import PASSAGE
from callslip.stores.properties.filters import Comparable, Condition, Where, matches

ChromaWhere = Mapping[str, object]

CONSTANT: Mapping[str, object] = {"level": PASSAGE, "ordinal": 0, "parent_id": ""}
"""The fields that are the same for each row: a row is a passage without a parent."""

NOT_METADATA = "document_id"
"""The field that is the row's id."""

WHOLE = 2**53
"""Up to this number each whole number is a float."""

_BOUNDS = {">": "$gt", ">=": "$gte", "<": "$lt", "<=": "$lte"}


def superset(where: Where | None) -> ChromaWhere | bool:
    """The condition: True if every row may match, False if none can."""
    if where is None:
        return True
    parts = [_condition(condition) for condition in where.every]
    if where.some:
        parts.append(_some(_condition(condition) for condition in where.some))
    if False in parts:
        return False
    return _joined("$and", [part for part in parts if not isinstance(part, bool)])


def _some(parts: Iterable[ChromaWhere | bool]) -> ChromaWhere | bool:
    known = list(parts)
    if True in known:
        return True
    stated = [part for part in known if not isinstance(part, bool)]
    return _joined("$or", stated) if stated else False


def _joined(operator: str, parts: list[ChromaWhere]) -> ChromaWhere | bool:
    """Chroma accepts two parts or more."""
    return True if not parts else parts[0] if len(parts) == 1 else {operator: parts}


def _condition(condition: Condition) -> ChromaWhere | bool:
    name, operator = condition.prop, condition.operator
    if name in CONSTANT:
        return matches(Where((condition,)), CONSTANT)
    if name == NOT_METADATA or name.startswith(("#", "$")):
        return True
    match operator:
        case "==" | "in":
            return _some(_compared(name, "$eq", value) for value in condition.values)
        case "@" | "contains":
            return _some(_compared(name, "$contains", value) for value in condition.values)
        case ">" | ">=" | "<" | "<=":
            return _compared(name, _BOUNDS[operator], condition.values[0])
        case _:
            return True


def _compared(name: str, operator: str, value: Comparable) -> ChromaWhere | bool:
    """A number is compared with whole numbers and with floats, which Chroma keeps apart."""
    if isinstance(value, datetime) or value == "":  # a field without metadata is an empty text
        return True
    if isinstance(value, str | bool):
        return {name: {operator: value}}
    if abs(value) >= WHOLE:
        return True
    numbers: list[ChromaWhere] = [{name: {operator: float(value)}}]
    if operator in ("$gt", "$gte"):
        numbers.append({name: {"$gte": math.floor(value)}})
    elif operator in ("$lt", "$lte"):
        numbers.append({name: {"$lte": math.ceil(value)}})
    elif float(value).is_integer():
        numbers.append({name: {operator: int(value)}})
    return _joined("$or", numbers)
