"""`callslip options`: the options of a collection: enrichment, JSON fields, ranking."""

from pathlib import Path
from typing import Any

import click
import yaml

from callslip.cli.shared.output import as_json, emit, reporting
from callslip.cli.shared.server import connect, url_option
from callslip.client import Client
from callslip.client.requests import plain
from callslip.errors import CollectionNotFound, InvalidRequest
from callslip.messages.options import Options


@click.command(name="options")
@click.argument("collection")
@click.argument(
    "file", type=click.Path(exists=True, dir_okay=False, path_type=Path), required=False
)
@url_option
@as_json
@reporting
def options_command(collection: str, file: Path | None, url: str | None, json_out: bool) -> None:
    """Show the enrichment options of COLLECTION, or set them from FILE (YAML or JSON).

    Entities, a dictionary of names and aliases, facets by rule, personal data: docs/enrichment.md.
    The file replaces all options, for documents that are ingested later. A missing collection
    is created.

    \b
    Example:  callslip options laws
              callslip options laws laws.yaml
    """
    with connect(url) as client:
        show_or_set(client, collection, file, json_out=json_out)


def show_or_set(client: Client, collection: str, file: Path | None, *, json_out: bool) -> None:
    """Print the options of a collection, after setting them from FILE if one is named."""
    options = (
        set_options(client, collection, _read(file)) if file else options_of(client, collection)
    )
    if json_out:
        emit(options)
    else:
        click.echo(yaml.safe_dump(options, allow_unicode=True, sort_keys=False), nl=False)


def options_of(client: Client, collection: str) -> dict[str, Any]:
    """The options of a collection; raises CollectionNotFound."""
    for record in client.list_collections().collections:
        if record.name == collection:
            options: dict[str, Any] = plain(record.options)
            return options
    raise CollectionNotFound(
        f"collection {collection!r} does not exist",
        hint=f"`callslip options {collection} FILE` makes it.",
    )


def set_options(client: Client, collection: str, options: dict[str, Any]) -> dict[str, Any]:
    """Set the options of a collection, which is made if it is missing.

    Raises InvalidRequest, which names all options if one is unknown.
    """
    try:
        changed: dict[str, Any] = plain(client.set_options(collection, options))
    except CollectionNotFound:
        changed = plain(client.create_collection(collection, options=options).options)
    except InvalidRequest as error:
        if options.keys() <= Options.model_fields.keys():
            raise
        names = ", ".join(Options.model_fields)
        hint = f"The options are {names}; docs/enrichment.md describes them."
        raise InvalidRequest(error.detail, hint=hint) from error
    return changed


def _read(file: Path) -> dict[str, Any]:
    try:
        options = yaml.safe_load(file.read_bytes())
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        where = getattr(error, "problem_mark", None)
        line = f":{where.line + 1}" if where else ""
        raise InvalidRequest(f"{file}{line} is neither YAML nor JSON") from None
    if not isinstance(options, dict):
        raise InvalidRequest(
            f"{file} holds no options",
            hint="They are written as `key: value`; see docs/enrichment.md.",
        )
    return options
