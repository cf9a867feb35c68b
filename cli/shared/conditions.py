"""Parses the conditions of a filter as a user types them: `year>=2024`."""

import re
from collections.abc import Iterable
from typing import Any

import click

from callslip.stores.properties.filters import typed

CONDITION = re.compile(
    r"(?P<prop>[^=<>!~]*[^=<>!~\s])\s*(?P<operator>[<>!=]=|[=<>~])\s*(?P<value>.*)", re.DOTALL
)


def conditions(where: Iterable[str]) -> dict[str, Any]:
    """Convert conditions to a filter; raise BadParameter if two have the same key."""
    filters: dict[str, Any] = {}
    for text in where:
        key, value = condition(text)
        if key in filters:
            raise click.BadParameter(
                f"{key!r} stands twice; 'PROPERTY in=ONE,OTHER' means either",
                param_hint="--where",
            )
        filters[key] = value
    return filters


def condition(text: str) -> tuple[str, Any]:
    """Parse `year>=2024`, `doc_type=policy` or `lang in=en,ko` to a filter's key and value."""
    match = CONDITION.fullmatch(text)
    if not match or match["value"][:1] in tuple("=<>~!"):
        raise click.BadParameter(
            f"{text!r} is not a condition such as 'year>=2024';"
            " text that begins with a sign stands in quotes: 'title=\">x\"'",
            param_hint="--where",
        )
    prop, operator, text = match["prop"], match["operator"], match["value"]
    if operator != "=":
        return f"{prop} {operator}", typed(text, operator)
    return prop, typed(text, prop.rpartition(" ")[2])
