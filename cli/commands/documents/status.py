"""`callslip status`: collections, documents, steps, failures and batches."""

from typing import Any

import click
from click.core import ParameterSource

from callslip.cli.commands.documents.versions import show_failed
from callslip.cli.shared.batches import batch_documents, get_batch, tell_batch
from callslip.cli.shared.options import collection_option
from callslip.cli.shared.output import as_json, emit, many, reporting
from callslip.cli.shared.server import connect, url_option
from callslip.client import Client
from callslip.client.requests import plain
from callslip.errors import CollectionNotFound, InvalidRequest
from callslip.vocabulary import DEFAULT_COLLECTION, in_force


@click.command(name="status")
@click.argument("document_id", required=False)
@collection_option
@click.option("--failed", is_flag=True, help="What failed for good, in all collections or in -c.")
@click.option("--batch", help="What was sent together, by its id.")
@url_option
@as_json
@reporting
def status_command(
    document_id: str | None,
    collection: str,
    failed: bool,
    batch: str | None,
    url: str | None,
    json_out: bool,
) -> None:
    """Show a collection's documents, every step of one, what failed, or how far a batch is.

    \b
    Example:  callslip status
              callslip status 1f0c…
              callslip status --failed
              callslip status --failed -c handbook
              callslip status --batch nightly
    """
    if failed and not (document_id is None and batch is None):
        raise InvalidRequest(
            "--failed goes with neither a document nor --batch",
            hint="`callslip status --batch ID` shows what failed of a batch.",
        )
    source = click.get_current_context().get_parameter_source("collection")
    named = source is not ParameterSource.DEFAULT
    with connect(url) as client:
        if failed:
            show_failed(client, collection if named else None, json_out)
            return
        if batch is not None:
            message = get_batch(client, batch)
            message["failures"] = list(batch_documents(client, batch, state="failed"))
        elif document_id is not None:
            message = plain(client.get_document(document_id))
        else:
            message = {
                "collections": plain(client.list_collections())["collections"],
                "documents": _documents(client, collection, named),
            }
    if json_out:
        emit(message)
    elif batch is not None:
        tell_batch(message)
    elif document_id is not None:
        _tell_document(message)
    else:
        _tell_collection(message, collection, named)


def _documents(client: Client, collection: str, named: bool) -> list[dict[str, Any]]:
    """The documents of a collection; none of the default one before its first document.

    Raises CollectionNotFound if a collection that the user named does not exist.
    """
    try:
        return list(map(plain, client.documents(collection)))
    except CollectionNotFound:
        if named:
            raise
        return []


def _tell_collection(overview: dict[str, Any], collection: str, named: bool) -> None:
    """Print a line for each collection, or for the named one alone, and its documents."""
    shown = [c for c in overview["collections"] if not named or c["name"] == collection]
    attached = set()
    for record in shown:
        if at := record.get("attached"):
            attached.add(record["name"])
            embedder = at["vectors"].replace("none", "unknown")
            where = f" at {at['server']}" if at["server"] else ""
            click.echo(f"{record['name']}: {at['table']}{where}, attached, embedder {embedder}")
            continue
        further = (
            f", {name}: {vector['embedder'] or 'provided vectors'}"
            for name, vector in record.get("vectors", {}).items()
        )
        click.echo(
            f"{record['name']}: {many(record['documents'], 'live document')}, {record['store']},"
            f" {record['embedder']}{''.join(further)}"
        )
    if not overview["documents"] and collection not in attached:
        aim = "" if collection == DEFAULT_COLLECTION else f" -c {collection}"
        click.echo(f"Nothing in {collection!r} yet. Add files with `callslip ingest PATH{aim}`.")
    elif len(shown) > 1 and collection not in attached:
        click.echo(f"Documents of {collection!r} (those of another: -c NAME):")
    for document in overview["documents"]:
        done = sum(s["state"] == "done" for s in document["steps"])
        click.echo(
            f"{document['document_id']}  {document['state']:8} {done}/{len(document['steps'])}"
            f"  {_whose(document)}{document['name']}{_in_force(document)}"
        )
        if document["error"]:
            click.secho(f"  {document['error']['detail']}", fg="red")


def _whose(document: dict[str, Any]) -> str:
    return f"{document['tenant']}: " if document["tenant"] else ""


def _in_force(document: dict[str, Any]) -> str:
    words = in_force(document.get("valid_from"), document.get("valid_to"))
    return f", {words}" if words else ""


def _tell_document(document: dict[str, Any]) -> None:
    click.secho(
        f"{document['name']} (version {document['version']}): {document['state']}"
        f"{_in_force(document)}",
        bold=True,
    )
    if document["parent"]:
        click.echo(f"  came within {document['parent']}")
    for step in document["steps"]:
        counts = ", ".join(f"{what} {n}" for what, n in step["counts"].items())
        seconds = "" if step["seconds"] is None else f"{step['seconds']:.2f} s"
        click.echo(
            f"  {step['step']:10} {step['state']:8} {seconds:>9}"
            f"  attempts {step['attempts']}  {counts}"
        )
    for warning in document["warnings"]:
        click.secho(f"  note: {warning}", fg="yellow")
    if document["error"]:
        click.secho(document["error"]["detail"], fg="red")
        click.echo(document["error"]["advice"])
    receipt = document["receipt"] or {}
    before, after = receipt.get("before", {}), receipt.get("after", {})
    for what in before | after:
        counts = f"{before.get(what, '?')} before it was deleted, {after.get(what, '?')} after"
        click.echo(f"  {what}: {counts}")
