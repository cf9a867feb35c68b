"""Property terms as Weaviate properties: one Weaviate property for each kind and name."""

import re
from collections.abc import Mapping
from datetime import timedelta

from weaviate.classes.config import DataType

from callslip.stores.properties.terms import (
    DATE,
    EPOCH,
    FLAG,
    NUMBER,
    TEXT,
    PropertyTerm,
    property_terms,
)
from callslip.stores.records import Scalar
from callslip.stores.weaviate.names import property_of

StoredValue = str | float | bool
"""A value as Weaviate stores it."""

_KINDS = {
    TEXT: ("text", DataType.TEXT),
    NUMBER: ("number", DataType.NUMBER),
    FLAG: ("flag", DataType.BOOL),
    DATE: ("instant", DataType.TEXT),
    TEXT.upper(): ("texts", DataType.TEXT_ARRAY),
    NUMBER.upper(): ("numbers", DataType.NUMBER_ARRAY),
    FLAG.upper(): ("flags", DataType.BOOL_ARRAY),
    DATE.upper(): ("instants", DataType.TEXT_ARRAY),
}

KIND_TYPES: Mapping[str, DataType] = dict(_KINDS.values())
"""The data type of each kind of property."""

_EDGE = "="

_NONCHARACTERS = "\ufdd0\ufdd1\ufdd2"
_ESCAPES = {
    letter: _NONCHARACTERS[0] + "".join(_NONCHARACTERS[1 + int(bit)] for bit in f"{i:03b}")
    for i, letter in enumerate("\n?" + _NONCHARACTERS)
}
_WRITTEN = str.maketrans(_ESCAPES)
_LETTERS = {written: letter for letter, written in _ESCAPES.items()}
_ESCAPED = re.compile(f"{_NONCHARACTERS[0]}[{_NONCHARACTERS[1:]}]{{3}}")


def property_at(mark: str, name: str) -> str:
    """The Weaviate property that stores the property terms with this mark and name."""
    return property_of(_KINDS[mark][0], name)


def stored_value(item: PropertyTerm) -> StoredValue:
    """A property term's value as Weaviate stores it; stored values have the order of the values.

    An instant is text of a fixed width in UTC: Weaviate's dates end in 2262, and its integers are
    exact to only 53 bits in messages.
    """
    if item.mark.lower() == DATE:
        return (EPOCH + timedelta(microseconds=int(item.value))).isoformat(timespec="microseconds")
    if item.mark.lower() == TEXT:
        return _EDGE + write_text(str(item.value)) + _EDGE
    return item.value


def write_text(text: str) -> str:
    """Encode text so that Weaviate's `Like` is exact.

    In `Like`, `?` stands for any character and cannot be escaped, and `*` does not match a line
    feed. Each `?`, line feed and noncharacter of this encoding is written as four Unicode
    noncharacters. The first of these four occurs only at the beginning of such a sequence, so that
    no part of a pattern matches a part of a sequence. The edges that `stored_value` adds preserve
    blanks at both ends.
    """
    return text.translate(_WRITTEN)


def read(mark: str, value: object) -> Scalar:
    """Read a stored text, number or flag back; a whole number becomes an integer."""
    if mark.lower() == TEXT:
        return _ESCAPED.sub(lambda match: _LETTERS[match[0]], str(value)[1:-1])
    if mark.lower() == FLAG:
        return bool(value)
    number = float(str(value))
    return int(number) if number.is_integer() else number


def as_properties(properties: Mapping[str, object]) -> dict[str, StoredValue | list[StoredValue]]:
    """All property terms of a chunk's properties, by Weaviate property."""
    single: dict[str, StoredValue | list[StoredValue]] = {}
    lists: dict[str, dict[StoredValue, None]] = {}
    for item in property_terms(properties):
        at = property_at(item.mark, item.name)
        if item.mark.isupper():
            lists.setdefault(at, {})[stored_value(item)] = None
        else:
            single[at] = stored_value(item)
    return {**single, **{at: list(values) for at, values in lists.items()}}
