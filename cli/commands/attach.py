"""`callslip attach` and `callslip detach`: tables of other programs as collections."""

from typing import get_args

import click

from callslip.cli.shared.output import as_json, emit, named, reporting
from callslip.cli.shared.server import connect, url_option
from callslip.client.requests import plain
from callslip.errors import CollectionNotFound, InvalidRequest
from callslip.vocabulary import Vectors


@click.group(name="attach")
def attach_group() -> None:
    """Search existing tables of other programs without copying them.

    \b
    Example:  callslip attach crate doc.search --name films
              callslip search "films about the sea" -c films
    """


@attach_group.command(name="crate")
@click.argument("table")
@click.option("--name", required=True, callback=named, help="Of the collection that it is to be.")
@click.option(
    "--vectors",
    type=click.Choice(get_args(Vectors)),
    default="none",
    show_default=True,
    help="ours: made by the embedder that runs here; none: by another one, and only words, or a"
    " request's own vector, are searched.",
)
@url_option
@as_json
@reporting
def attach_crate(table: str, name: str, vectors: Vectors, url: str | None, json_out: bool) -> None:
    """Make a collection of a table of CrateDB's hybrid search specification; it is only read.

    TABLE is TABLE or SCHEMA.TABLE, as in SQL. The server checks the table and lists all deviations
    from the specification.

    \b
    Example:  callslip attach crate doc.search --name films
              callslip attach crate 'doc."Films 2024"' --name films-2024 --vectors ours
    """
    with connect(url) as client:
        record = plain(client.attach_table(name, table, vectors=vectors))
    if json_out:
        emit(record)
        return
    at = record["attached"]
    click.echo(
        f"{name}: table {at['table']}, {record['dimension']} dimensions, {record['metric']}; only"
        f" read. Search it with `callslip search QUESTION -c {name}`."
    )
    if at["vectors"] == "none":
        click.echo("Questions are searched by their words alone: its embedder is not known.")


@click.command(name="detach")
@click.argument("name", callback=named)
@url_option
@as_json
@reporting
def detach_command(name: str, url: str | None, json_out: bool) -> None:
    """Detach the table of a collection; the table itself stays as it is.

    \b
    Example:  callslip detach films
    """
    with connect(url) as client:
        known = {record.name: record for record in client.list_collections().collections}
        if name not in known:
            raise CollectionNotFound(f"collection {name!r} does not exist")
        at = known[name].attached
        if at is None:
            raise InvalidRequest(
                f"collection {name!r} is no attached table",
                hint=f"DELETE /v1/collections/{name} deletes it with all its documents.",
            )
        client.delete_collection(name)
    if json_out:
        emit({"collection": name, "table": at.table})
    else:
        click.echo(f"{name} is forgotten; table {at.table} is as it was.")
