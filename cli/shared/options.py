"""Options that several commands share, and the parsers of their values."""

import json
import re
from collections.abc import Callable
from typing import Any, TypeVar, get_args

import click

from callslip.cli.shared.output import named
from callslip.errors import InvalidRequest
from callslip.readers import check_readers
from callslip.stores.properties.filters import instant
from callslip.vocabulary import DEFAULT_COLLECTION, StoreKind

FC = TypeVar("FC", bound=Callable[..., Any])
V = TypeVar("V", str | None, tuple[str, ...])


def not_empty(_: click.Context, __: click.Parameter, value: V) -> V:
    """Refuse an empty text, which a shell makes of a variable without a value: a callback."""
    if value == "" or (isinstance(value, tuple) and "" in value):
        raise click.BadParameter("the text is empty; is a variable not set?")
    return value


collection_option = click.option(
    "-c",
    "--collection",
    default=DEFAULT_COLLECTION,
    show_default=True,
    callback=named,
    help="The collection.",
)


def _day(_: click.Context, __: click.Parameter, text: str | None) -> str | None:
    if text and text not in ("now", "any") and instant(text) is None:
        raise click.BadParameter(f"{text!r} is no day such as 2020-03-31, nor `now`, nor `any`")
    return text


as_of_option = click.option(
    "--as-of",
    metavar="DAY",
    callback=_day,
    help="Only what is in force then: 2020-03-31, `now`, or `any` for all versions.",
)

store_option = click.option(
    "--store",
    type=click.Choice(get_args(StoreKind)),
    help="The store of a new collection; default from the settings.",
)


def _embedders(_: click.Context, __: click.Parameter, pairs: tuple[str, ...]) -> dict[str, str]:
    vectors: dict[str, str] = {}
    for pair in pairs:
        name, _equals, embedder = (part.strip() for part in pair.partition("="))
        if not name or not embedder:
            raise click.BadParameter(f"{pair!r} is not NAME=EMBEDDER")
        if name in vectors:
            raise click.BadParameter(f"{name!r} is given twice")
        vectors[name] = embedder
    return vectors


def vectors_option(help_text: str) -> Callable[[FC], FC]:
    """The option that names vectors with their embedders; its value is a dictionary."""
    return click.option(
        "--vector",
        "vectors",
        multiple=True,
        metavar="NAME=EMBEDDER",
        callback=_embedders,
        help=help_text,
    )


_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
SHORTEST_SECONDS = 5.0


def _properties(_: click.Context, __: click.Parameter, pairs: tuple[str, ...]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name.strip():
            raise click.BadParameter(f"{pair!r} is not NAME=VALUE")
        if name.strip() in values:
            raise click.BadParameter(f"{name.strip()!r} is given twice")
        try:
            values[name.strip()] = json.loads(text)
        except ValueError:
            values[name.strip()] = text
    return values


properties_option = click.option(
    "-p",
    "--property",
    "properties",
    multiple=True,
    metavar="NAME=VALUE",
    callback=_properties,
    help="What filters see, e.g. doc_type=policy or year=2024; once for each.",
)


def _readers(_: click.Context, __: click.Parameter, text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    try:
        return check_readers([name.strip() for name in text.split(",")])
    except InvalidRequest as error:
        raise click.BadParameter(error.detail) from None


readers_option = click.option(
    "--readers",
    callback=_readers,
    metavar="NAMES",
    help="Who may read them: user:NAME, group:NAME, with commas, or everyone; default: as before,"
    " and new ones everyone.",
)


source_url_option = click.option(
    "--source-url",
    metavar="ADDRESS",
    help="The web address of the file, which hits and citations then have; one that ends in / is"
    " the folder of several files.",
)


allow_duplicate_option = click.option(
    "--allow-duplicate", is_flag=True, help="Take it even where another name has the same content."
)


def seconds(_: click.Context, __: click.Parameter, text: str | None) -> float | None:
    """Convert `30s`, `10m`, `2h` or `1d` to seconds."""
    if text is None:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", text.strip())
    if not match or float(match[1]) * _SECONDS[match[2]] < SHORTEST_SECONDS:
        raise click.BadParameter(f"{text!r} is not a time such as 30s, 10m, 2h or 1d")
    return float(match[1]) * _SECONDS[match[2]]
