"""`callslip delete`: deletes documents, or a collection with all its documents."""

import click

from callslip.cli.shared.options import not_empty
from callslip.cli.shared.output import as_json, emit, many, named, reporting
from callslip.cli.shared.server import connect, url_option
from callslip.client import Client
from callslip.client.requests import plain
from callslip.errors import CollectionNotFound, InvalidRequest

HIDDEN = "Hidden from searches; a worker removes the data."


@click.command(name="delete")
@click.argument("document_ids", nargs=-1, callback=not_empty)
@click.option(
    "-c", "--collection", callback=named, metavar="NAME", help="The collection, with --all."
)
@click.option("--all", "all_", is_flag=True, help="The whole collection -c: all its documents.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@url_option
@as_json
@reporting
def delete_command(
    document_ids: tuple[str, ...],
    collection: str | None,
    all_: bool,
    yes: bool,
    url: str | None,
    json_out: bool,
) -> None:
    """Delete documents, or a collection with all its documents.

    They are hidden from searches at once; a worker then removes their data from the stores and the
    files, and `callslip status ID` shows the receipt of a document. What came within a document,
    such as attachments, is deleted with it. `callslip status` lists the ids. `callslip purge`
    removes every other trace, too: names, records of searches, backups.

    \b
    Example:  callslip delete 1f0c… 9b2e…
              callslip delete -c handbook --all
    """
    if bool(document_ids) == all_ or all_ != (collection is not None):
        raise InvalidRequest(
            "Name either the ids of documents, or a collection: -c NAME --all.",
            hint="`callslip status -c NAME` lists the ids.",
        )
    with connect(url) as client:
        if collection is not None:
            _delete_collection(client, collection, yes, json_out)
        else:
            _delete_documents(client, tuple(dict.fromkeys(document_ids)), yes, json_out)


def _delete_documents(
    client: Client, document_ids: tuple[str, ...], yes: bool, json_out: bool
) -> None:
    """Delete documents. Raises DocumentNotFound before the first deletion if one is unknown."""
    documents = [client.get_document(document_id) for document_id in document_ids]
    for document in documents if not yes else ():
        click.echo(f"  {document.name!r} in collection {document.collection!r}", err=True)
    if not yes:
        click.confirm(
            f"Delete {many(len(documents), 'document')}, with what came within?",
            abort=True,
            err=True,
        )
    deleted = [plain(client.delete_document(document_id)) for document_id in document_ids]
    if json_out:
        emit({"deleted": deleted})
        return
    for document in documents:
        before = " before" if document.state == "deleted" else ""
        click.echo(f"{document.document_id}  {document.name} was deleted{before}.")
    click.echo(f"{HIDDEN} `callslip status ID` shows the receipt.")


def _delete_collection(client: Client, name: str, yes: bool, json_out: bool) -> None:
    """Delete a collection. Raises InvalidRequest if it is attached."""
    known = {record.name: record for record in client.list_collections().collections}
    if name not in known:
        raise CollectionNotFound(f"collection {name!r} does not exist")
    if known[name].attached is not None:
        raise InvalidRequest(
            f"collection {name!r} is attached: its documents are those of another program",
            hint=f"`callslip detach {name}` detaches it.",
        )
    live = many(known[name].documents, "live document")
    if not yes:
        click.confirm(f"Delete collection {name!r} with {live}?", abort=True, err=True)
    deleted = plain(client.delete_collection(name))
    if json_out:
        emit(deleted)
        return
    click.echo(f"Collection {name!r} with {live} was deleted.")
    click.echo(f"{HIDDEN} GET /v1/collections/{name}/receipts lists the receipts.")
