"""Options that several commands have, and how their values are read."""

import json
import re
from typing import Any

import click

from cli.output import named
from stores.schemas import DEFAULT_COLLECTION

collection_option = click.option(
    "-c",
    "--collection",
    default=DEFAULT_COLLECTION,
    show_default=True,
    callback=named,
    help="The collection.",
)

_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
SHORTEST_SECONDS = 5.0


def _properties(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for pair in given:
        name, equals, text = pair.partition("=")
        if not equals or not name.strip():
            raise click.BadParameter(f"{pair!r} is not NAME=VALUE")
        if name.strip() in found:
            raise click.BadParameter(f"{name.strip()!r} is given twice")
        try:
            found[name.strip()] = json.loads(text)
        except ValueError:
            found[name.strip()] = text
    return found


properties_option = click.option(
    "-p",
    "--property",
    "properties",
    multiple=True,
    metavar="NAME=VALUE",
    callback=_properties,
    help="What filters see, e.g. doc_type=policy or year=2024; once for each.",
)


allow_duplicate_option = click.option(
    "--allow-duplicate", is_flag=True, help="Take it even where another name has the same content."
)


def seconds(_: click.Context, __: click.Parameter, given: str | None) -> float | None:
    """`30s`, `10m`, `2h` or `1d` in seconds."""
    if given is None:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", given.strip())
    if not found or float(found[1]) * _SECONDS[found[2]] < SHORTEST_SECONDS:
        raise click.BadParameter(f"{given!r} is not a time such as 30s, 10m, 2h or 1d")
    return float(found[1]) * _SECONDS[found[2]]
