"""Conditions of a filter as they are typed: `year>=2024`."""

import re
from collections.abc import Iterable
from typing import Any

import click

from stores.filters import typed

CONDITION = re.compile(
    r"(?P<prop>[^=<>!~]*[^=<>!~\s])\s*(?P<operator>[<>!=]=|[=<>~])\s*(?P<value>.*)", re.DOTALL
)


def conditions(where: Iterable[str]) -> dict[str, Any]:
    """Conditions as a filter; BadParameter where two have one key, of which the last would win."""
    found: dict[str, Any] = {}
    for given in where:
        key, value = condition(given)
        if key in found:
            raise click.BadParameter(
                f"{key!r} stands twice; 'PROPERTY in=ONE,OTHER' means either",
                param_hint="--where",
            )
        found[key] = value
    return found


def condition(given: str) -> tuple[str, Any]:
    """`year>=2024`, `doc_type=policy` or `lang in=en,ko`, as a key of a filter and its value."""
    found = CONDITION.fullmatch(given)
    if not found or found["value"][:1] in tuple("=<>~!"):
        raise click.BadParameter(
            f"{given!r} is not a condition such as 'year>=2024';"
            " text that begins with a sign stands in quotes: 'title=\">x\"'",
            param_hint="--where",
        )
    prop, operator, text = found["prop"], found["operator"], found["value"]
    if operator != "=":
        return f"{prop} {operator}", typed(text, operator)
    return prop, typed(text, prop.rpartition(" ")[2])
