"""Translates filters of frameworks to `having_all` and `having_any` (docs/filters.md)."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from callslip.errors import InvalidFilter


class Condition(NamedTuple):
    """A comparison: a property, an operator of the server, a value."""

    name: str
    operator: str
    value: Any


class Group(NamedTuple):
    """A conjunction of parts, or a disjunction if `is_any`."""

    is_any: bool
    parts: "tuple[Condition | Group, ...]"


class Having(NamedTuple):
    """The two groups of conditions of a search: a conjunction and a disjunction."""

    having_all: dict[str, Any] | None = None
    having_any: dict[str, Any] | None = None


_TOGETHER = {False: ("!=", "not-in"), True: ("==", "in")}
"""For `having_all` (False) and `having_any` (True): the operator of one value, and of a list.

Two conditions with the first on one property become one with the second."""


def having(tree: Condition | Group) -> Having:
    """Translate a tree to the two groups; raise InvalidFilter if they cannot express it."""
    all_: list[Condition] = []
    any_: list[Condition] = []
    waiting: list[Condition | Group] = [tree]
    while waiting:
        part = waiting.pop(0)
        if isinstance(part, Condition):
            all_.append(part)
        elif not part.is_any or len(part.parts) == 1:
            waiting.extend(part.parts)
        elif any_:
            raise refused("two groups of which any holds")
        else:
            any_.extend(_alternatives(part))
    return Having(_having(all_, is_any=False) or None, _having(any_, is_any=True) or None)


def _alternatives(group: Group) -> Iterator[Condition]:
    for part in group.parts:
        if isinstance(part, Condition):
            yield part
        elif part.is_any or len(part.parts) == 1:
            yield from _alternatives(part)
        else:
            raise refused("a group of which all hold within one of which any holds")


def _having(conditions: Iterable[Condition], *, is_any: bool) -> dict[str, Any]:
    one, many = _TOGETHER[is_any]
    expressions: dict[str, Any] = {}
    listed: dict[str, list[Any]] = {}
    for name, operator, value in conditions:
        if operator == one or (operator == many and isinstance(value, list)):
            listed.setdefault(name, []).extend(value if operator == many else [value])
        elif expressions.setdefault(f"{name} {operator}", value) != value:
            raise refused(f"two conditions '{name} {operator}' in one group")
    for name, values in listed.items():
        is_single = len(values) == 1
        expressions[f"{name} {one if is_single else many}"] = values[0] if is_single else values
    return expressions


def refused(what: str) -> InvalidFilter:
    """The error for a condition that the server cannot express."""
    return InvalidFilter(
        f"the server has no words for {what}",
        hint="It has one group of which all hold and one of which any holds; having_all and"
        " having_any say them in its own words (docs/filters.md).",
    )
