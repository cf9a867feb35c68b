"""Weaviate's filters, read from its protocol and tried on one object after another."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from weaviate.proto.v1 import base_pb2

Filters = base_pb2.Filters

_VALUES = {
    "value_text": "text",
    "value_text_array": "text",
    "value_number": "number",
    "value_number_array": "number",
    "value_boolean": "boolean",
    "value_boolean_array": "boolean",
    "value_int": "int",
    "value_int_array": "int",
}

_COMPARED: Mapping[int, Callable[[Any, Any], bool]] = {
    Filters.OPERATOR_EQUAL: lambda held, value: held == value,
    Filters.OPERATOR_GREATER_THAN: lambda held, value: held > value,
    Filters.OPERATOR_GREATER_THAN_EQUAL: lambda held, value: held >= value,
    Filters.OPERATOR_LESS_THAN: lambda held, value: held < value,
    Filters.OPERATOR_LESS_THAN_EQUAL: lambda held, value: held <= value,
}


class Refused(Exception):
    """The server's words for what it does not take."""


def tokens(tokenization: str, text: str) -> list[str]:
    """Tokens of a text."""
    return text.split() if tokenization == "whitespace" else [text.strip()]


def passes(
    where: Any,
    class_: str,
    known: Mapping[str, Mapping[str, Any]],
    uuid: str,
    properties: Mapping[str, Any],
) -> bool:
    """Tell whether an object passes; Refused for what Weaviate does not evaluate."""
    if where.operator in (Filters.OPERATOR_AND, Filters.OPERATOR_OR, Filters.OPERATOR_NOT):
        # All are tried: a wrong one is refused whatever the others say.
        held = [passes(each, class_, known, uuid, properties) for each in where.filters]
        if where.operator == Filters.OPERATOR_NOT:
            (only,) = held
            return not only
        return all(held) if where.operator == Filters.OPERATOR_AND else any(held)
    name = where.target.property
    kind = where.WhichOneof("test_value")
    value = getattr(where, kind)
    values = list(value.values) if kind.endswith("_array") else [value]
    if name == "_id":
        return _any(where.operator, [uuid], values)
    definition = known.get(name)
    if definition is None:
        raise Refused(
            f"no such prop with name '{name}' found in class '{class_}' in the schema."
            " Check your schema files for which properties in this class are available."
        )
    if not definition["indexFilterable"]:
        raise Refused(f"Filtering by property '{name}' requires inverted index.")
    (type_,) = definition["dataType"]
    if type_.removesuffix("[]") != _VALUES[kind] and not (
        type_ == "date" and _VALUES[kind] == "text"
    ):
        raise Refused(f"expected value to be {type_}, got {kind}")
    if name not in properties:
        return False
    held = properties[name] if isinstance(properties[name], list) else [properties[name]]
    if type_ == "date":
        held = [_moment(each) for each in held]
        return _any(where.operator, held, [_moment(each) for each in values])
    if type_.startswith("text"):
        held = [t for each in held for t in tokens(definition["tokenization"], each)]
        values = [t for each in values for t in tokens(definition["tokenization"], each)]
    return _any(where.operator, held, values)


def _any(operator: int, held: Sequence[Any], values: Sequence[Any]) -> bool:
    if operator == Filters.OPERATOR_CONTAINS_ANY:
        return any(each in values for each in held)
    (value,) = values
    if operator == Filters.OPERATOR_LIKE:
        pattern = re.escape(value).replace(r"\?", ".").replace(r"\*", ".*")
        return any(re.fullmatch(pattern, each) for each in held)
    if operator not in _COMPARED:
        raise Refused(f"operator {operator} is not supported")
    return any(_COMPARED[operator](each, value) for each in held)


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
