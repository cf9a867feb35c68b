"""`callslip options`: what a collection finds out about its documents."""

from pathlib import Path
from typing import Any

import click
import yaml

from callslip.errors import CollectionNotFound, InvalidRequest
from cli.client import Client
from cli.output import emit


def show_or_set(client: Client, collection: str, file: Path | None, *, json_out: bool) -> None:
    """Print the options of a collection, set from a file before where one is given."""
    found = client.set_options(collection, _read(file)) if file else options_of(client, collection)
    if json_out:
        emit(found)
    else:
        click.echo(yaml.safe_dump(found, allow_unicode=True, sort_keys=False), nl=False)


def options_of(client: Client, collection: str) -> dict[str, Any]:
    """The options of a collection; CollectionNotFound."""
    for record in client.get("/v1/collections")["collections"]:
        if record["name"] == collection:
            found: dict[str, Any] = record["options"]
            return found
    raise CollectionNotFound(
        f"collection {collection!r} does not exist",
        hint=f"`callslip options {collection} FILE` makes it.",
    )


def _read(file: Path) -> dict[str, Any]:
    try:
        given = yaml.safe_load(file.read_bytes())
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        where = getattr(error, "problem_mark", None)
        line = f":{where.line + 1}" if where else ""
        raise InvalidRequest(f"{file}{line} is neither YAML nor JSON") from None
    if not isinstance(given, dict):
        raise InvalidRequest(
            f"{file} holds no options",
            hint="They are written as `key: value`; see docs/enrichment.md.",
        )
    return given
