"""`callslip attach` and `callslip detach`: tables and Chroma collections of other programs."""

import re
from pathlib import Path
from typing import Any, get_args

import click

from callslip.cli.shared.options import not_empty
from callslip.cli.shared.output import as_json, emit, named, reporting
from callslip.cli.shared.server import connect, url_option
from callslip.client.requests import plain, without_none
from callslip.errors import CollectionNotFound, InvalidRequest
from callslip.vocabulary import NAME, Vectors


@click.group(name="attach")
def attach_group() -> None:
    """Search existing tables and Chroma collections of other programs without copying them.

    \b
    Example:  callslip attach crate doc.search --name films
              callslip attach chroma http://127.0.0.1:8000 faq
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
    help="ours: made by the embedder that runs here; previous: by the previous_embedder of the"
    " settings; none: by another one, and only words, or a request's own vector, are searched.",
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
    _say_attached(name, record)


@attach_group.command(name="chroma")
@click.argument("where", callback=not_empty)
@click.argument("collection")
@click.option("--name", callback=named, help="Of the collection here.  [default: COLLECTION]")
@click.option(
    "--vectors",
    type=click.Choice(get_args(Vectors)),
    default="ours",
    show_default=True,
    help="ours: made by the embedder that runs here; previous: by the previous_embedder of the"
    " settings; none: by another one, and only a request's own vector is searched.",
)
@click.option("--tenant", help="Tenant of the server.  [default: default_tenant]")
@click.option("--database", help="Database of the tenant.  [default: default_database]")
@url_option
@as_json
@reporting
def attach_chroma(
    where: str,
    collection: str,
    name: str | None,
    vectors: Vectors,
    tenant: str | None,
    database: str | None,
    url: str | None,
    json_out: bool,
) -> None:
    """Make a collection of one in a Chroma server, which is only read.

    WHERE is the address of the server as Callslip's server reaches it; keys are in the setting
    chroma.attached_keys. Or WHERE is a folder of Chroma's on this machine: then a copy is served,
    and searched, until Ctrl-C; the folder itself stays as it is. Run the command again to serve
    the folder as it is then.

    \b
    Example:  callslip attach chroma http://127.0.0.1:8000 faq
              callslip attach chroma ./chroma_db faq --name old-faq --vectors none
    """
    if not (name := name or collection) or not re.fullmatch(NAME, name):
        raise InvalidRequest(f"{name!r} is no name of a collection here", hint="Set --name.")

    def attach(at: str, of: str | None) -> None:
        there = without_none(url=at, collection=collection, tenant=of, database=database)
        with connect(url) as client:
            record = plain(client.attach_table(name, chroma=there, vectors=vectors))
        if json_out:
            emit(record)
        else:
            _say_attached(name, record)

    if "://" in where:
        attach(where, tenant)
        return
    if tenant or database:
        raise InvalidRequest("--tenant and --database are those of a server, not of a folder")
    # Other commands start faster without this import.
    from callslip.workers.supervision.chroma_folder import served_copy

    with served_copy(Path(where), lambda text: click.echo(text, err=True)) as (at, secret, wait):
        attach(at, secret)
        click.echo("A copy of the folder is searched until Ctrl-C.", err=True)
        wait()
    click.echo(f"Stopped; {name} is attached, and searched again when this command runs.", err=True)


def _say_attached(name: str, record: dict[str, Any]) -> None:
    at = record["attached"]
    where = f"{at['table']} at {at['server']}" if at["server"] else f"table {at['table']}"
    click.echo(f"{name}: {where}, {record['dimension']} dimensions, {record['metric']}; only read.")
    if at["vectors"] == "none" and at["server"]:
        click.echo(
            "Its embedder is not known: only requests that give a query_embedding can search it."
        )
        return
    click.echo(f"Search it with `callslip search QUESTION -c {name}`.")
    if at["vectors"] == "none":
        click.echo("Questions are searched by their words alone: its embedder is not known.")


@click.command(name="detach")
@click.argument("name", callback=named)
@url_option
@as_json
@reporting
def detach_command(name: str, url: str | None, json_out: bool) -> None:
    """Detach the table or Chroma collection of a collection, which itself stays as it is.

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
                f"collection {name!r} is not attached",
                hint=f"`callslip delete -c {name} --all` deletes it with all its documents.",
            )
        client.delete_collection(name)
    if json_out:
        emit({"collection": name, "table": at.table})
    else:
        click.echo(f"{name} is forgotten; {at.table} is as it was.")
