"""Filters on properties: `having_all` and `having_any` as one typed value for every store."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal, get_args

from callslip.errors import InvalidFilter
from callslip.messages.values import is_unicode as is_unicode

Operator = Literal[
    "==", "!=", "~", ">", ">=", "<", "<=", "!>", "!>=", "!<", "!<=", "@", "contains", "in", "not-in"
]
OPERATORS: tuple[Operator, ...] = get_args(Operator)

COMPLEMENTS: Mapping[Operator, Operator] = {
    "!=": "==",
    "not-in": "in",
    "!>": ">",
    "!>=": ">=",
    "!<": "<",
    "!<=": "<=",
}
"""Operators that hold exactly if another one does not, so also if the property is missing."""

_LISTED = ("contains", "in", "not-in")

Comparable = str | float | bool | datetime
"""The form in which values are compared. Two are equal if their types and values are equal.

A datetime is in UTC.
"""

_GLUED = re.compile(r"\w[=<>!~]+\s*$")

MAX_VALUES = 500
"""The most values in one filter. Chroma's SQL fails at 1,000 alternatives."""

_TOO_MANY = f"The filter holds more than {MAX_VALUES} values."

MAX_PATTERN, MAX_STARS = 200, 16
"""The most bytes and wildcards in a pattern: with more, Tantivy takes seconds and then fails."""


@dataclass(frozen=True)
class Condition:
    """`property operator value`.

    The value is a tuple for `contains`, `in` and `not-in`, the pattern as written for `~`, and one
    value for every other operator.
    """

    prop: str
    operator: Operator
    value: Comparable | tuple[Comparable, ...]

    @property
    def values(self) -> tuple[Comparable, ...]:
        """The value, or all of them."""
        return self.value if isinstance(self.value, tuple) else (self.value,)


@dataclass(frozen=True)
class Where:
    """A filter: all of `every` hold and, if `some` is not empty, at least one of `some` holds."""

    every: tuple[Condition, ...] = ()
    some: tuple[Condition, ...] = ()

    def __iter__(self) -> Iterator[Condition]:
        yield from self.every
        yield from self.some


def parse(
    having_all: Mapping[str, object] | None, having_any: Mapping[str, object] | None
) -> Where | None:
    """Parse the two groups of a request; None if neither is provided.

    The last space-separated token of a key is the operator; a key without one means `==`:

    - `==`, `in`: the property is one value, and equals the filter's value or one of its values.
    - `!=`, `not-in`: the exact complement, so true if the property is missing or a list.
    - `~`: the property is text, and its written form matches; `*` stands for any characters.
    - `>`, `>=`, `<`, `<=`: numbers with numbers, dates with dates.
    - `!>`, `!>=`, `!<`, `!<=`: the exact complement, so true if the property is missing.
    - `@`, `contains`: the property is a list and contains the filter's value or one of its values.

    Text is compared case-sensitively. A string that is a whole ISO 8601 date or datetime is an
    instant, in UTC if it names no offset. Numbers are 64-bit floats; a boolean is not a number.

    Raises InvalidFilter, which names the invalid key or group.
    """
    if having_all is None and having_any is None:
        return None
    where = Where(_group("having_all", having_all), _group("having_any", having_any))
    if sum(len(condition.values) for condition in where) > MAX_VALUES:
        raise InvalidFilter(_TOO_MANY)
    return where


def also(where: Where | None, condition: Condition) -> Where:
    """A filter that another condition narrows."""
    return replace(where, every=(*where.every, condition)) if where else Where((condition,))


def typed(text: str, operator: str) -> object:
    """Parse the value of a condition that a person wrote as text.

    A number, true, false or a text in quotes is parsed as JSON; anything else is text. For `in`,
    `not-in` and `contains`, the text is a list in JSON or with commas.
    """
    if operator == "~":
        return text
    if operator not in _LISTED:
        return _scalar(text)
    listed = _json(text)
    if isinstance(listed, list):
        return listed
    return [_scalar(part.strip()) for part in text.split(",") if part.strip()]


def _scalar(text: str) -> object:
    value = _json(text)
    return value if isinstance(value, str | int | float) else text


def _json(text: str) -> object:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return None if isinstance(value, float) and not math.isfinite(value) else value


def normalize(value: object) -> Comparable:
    """Return the form in which a single value is compared, for properties and for filters.

    Raises ValueError if the value is not allowed; the error's text continues a sentence whose
    subject is the value: `is not a finite number`.
    """
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        try:
            number = float(value)
        except OverflowError:
            raise ValueError("is a number too large for 64 bits") from None
        if not math.isfinite(number):
            raise ValueError("is not a finite number")
        return number + 0.0  # no negative zero
    if isinstance(value, str):
        if not is_unicode(value):
            raise ValueError("is not valid Unicode")
        return instant(value) or value
    raise ValueError("is neither a string, a number nor a boolean")


def instant(text: str) -> datetime | None:
    """Parse a whole ISO 8601 date (midnight UTC) or datetime; None if the text is neither."""
    if not _ISO_8601.fullmatch(text):
        return None
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def matches(where: Where, properties: Mapping[str, object]) -> bool:
    """Tell whether the properties pass the filter. Every store is tested against this function."""
    return all(_holds(condition, properties) for condition in where.every) and (
        not where.some or any(_holds(condition, properties) for condition in where.some)
    )


def is_like(parts: tuple[str, ...], text: str) -> bool:
    """Match text with the parts between the stars of a pattern, in linear time."""
    first, *middle, last = parts if len(parts) > 1 else (parts[0], "")
    if len(parts) == 1:
        return text == first
    at, end = len(first), len(text) - len(last)
    if at > end or not text.startswith(first) or not text.endswith(last):
        return False
    for part in middle:
        start = text.find(part, at, end)
        if start < 0:
            return False
        at = start + len(part)
    return True


_ISO_8601 = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"(T[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}:[0-9]{2})?)?"
)


def _group(name: str, group: Mapping[str, object] | None) -> tuple[Condition, ...]:
    if group is None:
        return ()
    if not group:
        raise InvalidFilter(f"{name} is empty: leave it out, or name a property.")
    if len(group) > MAX_VALUES:  # a client could let the server parse 100,000
        raise InvalidFilter(_TOO_MANY)
    return tuple(_condition(key, value) for key, value in group.items())


def _condition(key: str, value: object) -> Condition:
    prop, operator = _split(key)
    try:
        return Condition(prop, operator, _operand(operator, value))
    except ValueError as error:
        raise InvalidFilter(
            f"The value of {key!r} {error}.",
            hint="Correct it; docs/filters.md says what each operator compares.",
        ) from None


def _split(key: str) -> tuple[str, Operator]:
    prop, space, token = key.rstrip().rpartition(" ")
    operator: Operator = "=="
    if space and token in OPERATORS:
        operator = token
    elif space and not any(char.isalnum() or char == "_" for char in token):
        raise InvalidFilter(f"{key!r} has an unknown operator {token!r}.")
    elif _GLUED.search(key):
        raise InvalidFilter(f"{key!r} needs a space between the property and the operator.")
    else:
        prop = key
    prop = prop.strip()
    if not prop or not is_unicode(prop):
        raise InvalidFilter(f"{key!r} names no property.")
    return prop, operator


def _operand(operator: Operator, value: object) -> Comparable | tuple[Comparable, ...]:
    """Check and normalize a value. The text of a ValueError continues `The value of KEY`."""
    if operator in ("in", "not-in", "contains"):
        if operator == "contains" and not isinstance(value, list | tuple):
            return (normalize(value),)
        if not isinstance(value, list | tuple) or not value:
            raise ValueError("must be a list that is not empty")
        return tuple(normalize(member) for member in value)
    if operator == "~":
        if not isinstance(value, str) or not is_unicode(value):
            raise ValueError("must be text, `*` standing for any characters")
        if len(value.encode()) > MAX_PATTERN or value.count("*") > MAX_STARS:
            raise ValueError(f"has more than {MAX_PATTERN} bytes or {MAX_STARS} `*`")
        return value
    if isinstance(value, list | tuple):
        raise ValueError("is a list: use `in`, or `contains` for a property that is a list")
    normal = normalize(value)
    if operator.strip("!") in (">", ">=", "<", "<=") and isinstance(normal, str | bool):
        raise ValueError("must be a number or an ISO 8601 date")
    return normal


def _holds(condition: Condition, properties: Mapping[str, object]) -> bool:
    if positive := COMPLEMENTS.get(condition.operator):
        return not _holds(replace(condition, operator=positive), properties)
    actual = properties.get(condition.prop)
    if actual is None:
        return False
    if condition.operator in ("@", "contains"):
        return isinstance(actual, list | tuple) and any(
            _same(normalize(member), value) for member in actual for value in condition.values
        )
    if isinstance(actual, list | tuple):
        return False
    if condition.operator == "~":
        return isinstance(actual, str) and is_like(tuple(str(condition.value).split("*")), actual)
    if condition.operator in ("==", "in"):
        return any(_same(normalize(actual), value) for value in condition.values)
    return _ordered(normalize(actual), condition.operator, condition.values[0])


def _same(left: Comparable, right: Comparable) -> bool:
    return type(left) is type(right) and left == right


def _ordered(left: Comparable, operator: Operator, right: Comparable) -> bool:
    if type(left) is not type(right):
        return False
    below, equal = left < right, left == right  # type: ignore[operator]
    if operator.endswith("=") and equal:
        return True
    return below if operator.startswith("<") else not below and not equal
