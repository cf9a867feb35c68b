"""`callslip purge`: uses the ledger, the blobs and the stores directly."""

import shutil
import time
from contextlib import suppress
from pathlib import Path

import click
import redis

from callslip.cli.shared.installation import (
    Turns,
    backup_lock,
    counter,
    key_file_option,
    open_context,
    open_destination,
)
from callslip.cli.shared.options import not_empty
from callslip.cli.shared.output import as_json, emit, many, reporting
from callslip.config.settings import Settings
from callslip.errors import InvalidRequest
from callslip.messages.values import is_unicode
from callslip.stores.backend import Backend
from callslip.stores.chroma.server_files import compact_server
from callslip.tasks.shared.broker import connect
from callslip.workers.local_settings import open_ledger, placed_settings

_SAVE_ATTEMPTS = 100


@click.command(name="purge")
@click.option(
    "--document", metavar="ID", callback=not_empty, help="A document, with those that it contains."
)
@click.option(
    "--tenant",
    metavar="NAME",
    callback=not_empty,
    help="A tenant of --collection, with all it has.",
)
@click.option(
    "-c", "--collection", metavar="NAME", callback=not_empty, help="The collection of --tenant."
)
@click.option(
    "--user",
    metavar="NAME",
    callback=not_empty,
    help="A user's feedback, searches and conversations.",
)
@click.option(
    "--backups",
    metavar="DESTINATION",
    callback=not_empty,
    help="Purge these backups too; default backup.to, if set.",
)
@key_file_option
@click.option("--yes", is_flag=True, help="Do not ask.")
@as_json
@reporting
def purge_command(
    document: str | None,
    tenant: str | None,
    collection: str | None,
    user: str | None,
    backups: str | None,
    key_file: Path | None,
    yes: bool,
    json_out: bool,
) -> None:
    """Remove every trace of a document, a tenant or a user, and print the receipt.

    From stores, files, the ledger's rows and logs of events, memory, records of searches,
    conversations and backups. Searches continue meanwhile; ingestion into the collection pauses.
    After an interruption the same command continues.

    \b
    Example:  callslip purge --document 3f0c… --backups /mnt/backups/callslip
              callslip purge --collection handbook --tenant acme
              callslip purge --user ann@example.org
    """
    if [document, tenant, user].count(None) != 2 or (tenant is None) != (collection is None):
        raise InvalidRequest(
            "Name one of --document, --tenant with --collection, and --user.", hint=""
        )
    for text in filter(None, (document, tenant, collection, user)):
        if not is_unicode(text):
            raise InvalidRequest(f"{text!r} is not valid Unicode")
    from callslip.ingestion.maintenance.purge import purge_document, purge_tenant, purge_user
    from callslip.stores.backup.purging import purge_backups

    settings = placed_settings()
    open_ledger(settings).close()
    url = backups or settings.backup.to
    destination = open_destination(settings, url, key_file) if url else None
    with open_context(settings) as context:
        target = _target(context.backend, document, user, str(collection), str(tenant))
        if not yes:
            click.confirm(f"Purge {target}? This cannot be undone.", abort=True, err=True)
        with counter(json_out) as progress:
            turns = Turns(context)
            if document is not None:
                receipt = purge_document(context.backend, turns, document)
            elif user is not None:
                receipt = purge_user(context.backend, turns, user)
            else:
                receipt = purge_tenant(context.backend, turns, str(collection), str(tenant))
            _compact_servers(settings)
            if destination is not None:
                with backup_lock(settings):
                    receipt["backups"] = purge_backups(destination, receipt, progress)
    if json_out:
        emit(receipt)
        return
    removed = receipt["before"] or receipt["rows"] or receipt.get("backups", {}).get("rows")
    unknown = user is not None and not removed
    done = "Nothing is known of this user" if unknown else "Purged"
    click.echo(f"{done}; receipt {receipt['name']}")
    for title in ("before", "after", "rows", "backups"):
        figures = ", ".join(f"{name} {count:,}" for name, count in receipt.get(title, {}).items())
        click.echo(f"  {title}: {figures or 'nothing'}")
    click.echo(f"  {many(len(receipt['document_ids']), 'document')}")
    for note in receipt["notes"]:
        click.secho(f"  {note}", fg="yellow")
    if destination is None:
        click.echo(
            "Backups may still have it; every restore of one that gets this receipt purges it."
        )
        click.echo("To purge a backup now, run the command again with --backups DESTINATION.")


def _target(
    backend: Backend, document_id: str | None, user: str | None, collection: str, tenant: str
) -> str:
    """What is purged, in words. Raises an error for a document or tenant that does not exist."""
    from callslip.ingestion.maintenance.purge import tenant_documents

    if user is not None:
        return f"the feedback, searches and conversations of user {user!r}"
    if document_id is None:
        count = many(len(tenant_documents(backend, collection, tenant)), "document")
        return f"tenant {tenant!r} of collection {collection!r} with {count}"
    document = backend.ledger.documents.get(document_id)
    whose = f" of tenant {document.tenant!r}" if document.tenant else ""
    within = len(backend.ledger.purge.with_children([document_id])) - 1
    more = f" and {many(within, 'document')} within it" if within else ""
    return f"document {document.name!r}{whose} in collection {document.collection!r}{more}"


def _compact_servers(settings: Settings) -> None:
    """Rewrite the files of the servers that `callslip up` runs, which keep deleted data a while."""
    compact_server(settings.data_dir / "chroma")
    if (settings.data_dir / "valkey").exists() and settings.broker.url is not None:
        broker = connect(settings)
        for _ in range(_SAVE_ATTEMPTS):
            with suppress(redis.RedisError):
                broker.save()  # instead of the snapshot that has deleted data
                break
            time.sleep(0.1)  # another snapshot is being written
        shutil.rmtree(settings.data_dir / "valkey" / "appendonlydir", ignore_errors=True)
