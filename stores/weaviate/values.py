"""Typed atoms as properties of Weaviate: one property for each kind and name."""

import re
from collections.abc import Mapping
from datetime import timedelta

from weaviate.classes.config import DataType

from stores.atoms import DATE, EPOCH, FLAG, NUMBER, TEXT, Atom, atoms
from stores.records import Scalar
from stores.weaviate.names import property_of

Held = str | float | bool
"""A value as Weaviate holds it."""

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
    """The property in which the atoms of this mark and name lie."""
    return property_of(_KINDS[mark][0], name)


def held(item: Atom) -> Held:
    """An atom's value as Weaviate holds it, which compares as the value does.

    An instant is text of one width in UTC: Weaviate's dates end in 2262, and its integers on the
    wire are exact to 53 bits only.
    """
    if item.mark.lower() == DATE:
        return (EPOCH + timedelta(microseconds=int(item.value))).isoformat(timespec="microseconds")
    if item.mark.lower() == TEXT:
        return _EDGE + write_text(str(item.value)) + _EDGE
    return item.value


def write_text(text: str) -> str:
    """Write text so that Weaviate's `Like` can be exact.

    Its `?` stands for any letter, nothing escapes that, and its `*` does not match a line's end.
    Both are written as four noncharacters, of which only the first begins such a sequence, so that
    no part of a pattern matches a part of one. The edges that `held` adds keep blanks at the ends.
    """
    return text.translate(_WRITTEN)


def read(mark: str, value: object) -> Scalar:
    """Read a value back; a whole number is an integer."""
    if mark.lower() == TEXT:
        return _ESCAPED.sub(lambda found: _LETTERS[found[0]], str(value)[1:-1])
    if mark.lower() == FLAG:
        return bool(value)
    number = float(str(value))
    return int(number) if number.is_integer() else number


def as_properties(properties: Mapping[str, object]) -> dict[str, Held | list[Held]]:
    """All atoms of a chunk's properties."""
    single: dict[str, Held | list[Held]] = {}
    lists: dict[str, dict[Held, None]] = {}
    for item in atoms(properties):
        at = property_at(item.mark, item.name)
        if item.mark.isupper():
            lists.setdefault(at, {})[held(item)] = None
        else:
            single[at] = held(item)
    return {**single, **{at: list(values) for at, values in lists.items()}}
