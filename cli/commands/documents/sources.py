"""`callslip source`: manages the sources from which documents are fetched periodically.

These commands use the ledger directly and not the server: a person who may name a folder of the
workers' machine must be allowed to run commands there.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from typing import Any

import click

from callslip.cli.shared.options import (
    collection_option,
    not_empty,
    properties_option,
    readers_option,
    seconds,
)
from callslip.cli.shared.output import as_json, emit, named, reporting
from callslip.cli.shared.patience import Patience
from callslip.cli.shared.server import connect
from callslip.config import Settings
from callslip.errors import CollectionNotFound, SourceNotFound
from callslip.ingestion.sources import SOURCE, source_url
from callslip.stores.ledger import Ledger, SourceRecord
from callslip.stores.naming import clean_tenant
from callslip.stores.properties.values import check_properties
from callslip.stores.schemas import check_tenant
from callslip.vocabulary import FILTERABLE
from callslip.workers.local_settings import open_ledger, placed_settings

POLL_SECONDS = 0.5

_ORDER = ("new", "changed", "unchanged", "duplicate", "failed", "missing", "deleted")

tenant_option = click.option("--tenant", default="", help="Whose documents.")


@click.group(name="source")
def source_group() -> None:
    """Fetch documents from a page, a folder or a bucket, at intervals.

    The ingest workers check each source: they ingest new and changed files and skip the others.
    A document's name is NAME/PATH, and its property `source` has the URL of the file.

    \b
    Example:  callslip source add policies /srv/policies --every 1m
              callslip source add rates https://example.org/rates.html --every 1d
              callslip source sync policies --delete-missing
    """


@source_group.command()
@click.argument("name", callback=named)
@click.argument("address", callback=not_empty)
@collection_option
@tenant_option
@click.option(
    "--every",
    callback=seconds,
    help="How often, e.g. 30s, 10m, 2h, 1d; by default only on request.",
)
@click.option("--delete-missing", is_flag=True, help="Delete documents whose files are gone.")
@properties_option
@readers_option
@as_json
@reporting
def add(
    name: str,
    address: str,
    collection: str,
    tenant: str,
    every: float | None,
    delete_missing: bool,
    properties: dict[str, Any],
    readers: tuple[str, ...] | None,
    json_out: bool,
) -> None:
    """Add a source under NAME; the workers check it at once.

    ADDRESS is a folder of the workers' machine, a page (https://…), or a bucket's prefix
    (s3://bucket/prefix). A repeated command changes nothing.

    \b
    Example:  callslip source add law s3://papers/law --every 1h -p doc_type=law
    """
    url, whose = source_url(address), clean_tenant(tenant)
    checked = check_properties(properties, reserved={*FILTERABLE, SOURCE})
    settings = placed_settings()
    with closing(open_ledger(settings)) as ledger:
        _make_collection(ledger, settings, collection, whose)
        added = ledger.sources.add(
            collection,
            name,
            url,
            tenant=whose,
            properties=checked,
            every_seconds=every,
            delete_missing=delete_missing,
            readers=readers,
        )
    if json_out:
        emit(asdict(added))
    else:
        click.echo(f"{added.name}: {added.url} into {added.collection}, {_how_often(added)}")
        click.echo(f"See how it goes with:  callslip source list   or  callslip source sync {name}")


@source_group.command(name="list")
@as_json
@reporting
def list_command(json_out: bool) -> None:
    """Show every source with the time and the result of its last check.

    \b
    Example:  callslip source list
    """
    with closing(open_ledger(placed_settings())) as ledger:
        sources = [
            (record, ledger.sources.failures(record.source_id)) for record in ledger.sources.all()
        ]
    if json_out:
        emit([asdict(record) | {"failures": _plain(failed)} for record, failed in sources])
        return
    if not sources:
        click.echo("No source yet. Add one with `callslip source add NAME ADDRESS`.")
    for record, failed in sources:
        whose = f", tenant {record.tenant}" if record.tenant else ""
        click.secho(f"{record.name}  ({record.collection}{whose})", bold=True)
        click.echo(f"  {record.url}  {_how_often(record)}")
        _tell(record, failed)


@source_group.command()
@click.argument("name")
@collection_option
@tenant_option
@click.option("--delete-missing", is_flag=True, help="Delete documents whose files are gone.")
@click.option("--force", is_flag=True, help="With --delete-missing: also when nothing is left.")
@click.option("--no-wait", is_flag=True, help="Return at once; the workers do the rest.")
@as_json
@reporting
def sync(
    name: str,
    collection: str,
    tenant: str,
    delete_missing: bool,
    force: bool,
    no_wait: bool,
    json_out: bool,
) -> None:
    """Check a source now and print what changed. Exit code 1 if a file failed.

    An empty listing deletes no documents, unless --force is set. After Ctrl-C the
    workers continue.

    \b
    Example:  callslip source sync policies --delete-missing
    """
    with closing(open_ledger(placed_settings())) as ledger:
        before = _source(ledger, collection, name, tenant)
        if before.ended_at is not None or delete_missing or force:  # else its first run is due
            ledger.sources.ask(before.source_id, delete_missing=delete_missing, force=force)
        if no_wait:
            click.echo("Asked for; `callslip source list` shows what comes of it.")
            return
        record = _ended(ledger, before, quiet=json_out)
        failed = ledger.sources.failures(record.source_id)
    if json_out:
        emit(asdict(record) | {"failures": _plain(failed)})
    else:
        _tell(record, failed)
        if record.counts.get("new") or record.counts.get("changed"):
            click.echo(f"See them go live with:  callslip status -c {collection}")
    sys.exit(1 if record.failure or record.counts.get("failed") else 0)


@source_group.command()
@click.argument("name")
@collection_option
@tenant_option
@click.option("--documents", is_flag=True, help="Delete the documents that came from it, too.")
@as_json
@reporting
def remove(name: str, collection: str, tenant: str, documents: bool, json_out: bool) -> None:
    """Remove a source. Its documents stay, unless --documents is set.

    \b
    Example:  callslip source remove policies
    """
    with closing(open_ledger(placed_settings())) as ledger:
        record = _source(ledger, collection, name, tenant)
        ids = ledger.sources.document_ids(record.source_id) if documents else []
        for document_id in ids:
            ledger.documents.delete(document_id)  # the sweep removes their data
        ledger.sources.remove(record.source_id)
    if json_out:
        emit({"name": name, "documents_deleted": len(ids)})
    else:
        deleted = f"{len(ids)} document{'s' * (len(ids) != 1)} deleted"
        click.echo(f"{name} is forgotten" + (f", {deleted}" if ids else ""))


def _make_collection(ledger: Ledger, settings: Settings, name: str, tenant: str) -> None:
    """Create the collection through the server if it is missing, as for a first file."""
    try:
        schema = ledger.collections.get(name).schema
    except CollectionNotFound:
        with connect(None) as client:
            client.create_collection(name, tenants=True if tenant else None)
        schema = ledger.collections.get(name).schema
    check_tenant(schema, tenant)
    if tenant and tenant not in ledger.tenants.all(name):
        with connect(None) as client:
            # the server checks the name with the store
            client.create_tenant(name, tenant)


def _source(ledger: Ledger, collection: str, name: str, tenant: str) -> SourceRecord:
    record = ledger.sources.find(collection, name, tenant=clean_tenant(tenant))
    if record is None:
        raise SourceNotFound(f"collection {collection!r} has no source {name!r}")
    return record


def _ended(ledger: Ledger, before: SourceRecord, *, quiet: bool) -> SourceRecord:
    """Wait for the end of a run that began after the request; return the source.

    Raises ServerDown if no worker begins one.
    """
    patience = Patience(
        "ingest",
        "The next one does; `callslip source list` shows it, and the same command follows it."
        " Start Callslip with `callslip up` if it does not run.",
    )
    with _line(quiet or not sys.stderr.isatty()) as show:
        while True:
            record = _source(ledger, before.collection, before.name, before.tenant)
            waiting = record.due_at is not None and record.due_at <= time.time()
            if record.began_at is None and not waiting and record.ended_at != before.ended_at:
                return record
            if record.began_at is not None:
                patience.renew()
                show(f"Looking at {record.name}: {ledger.sources.seen(record)} files")
            else:
                patience.check()
            time.sleep(POLL_SECONDS)


@contextmanager
def _line(quiet: bool) -> Iterator[Any]:
    """One line on standard error that is overwritten each time."""

    def show(text: str) -> None:
        if not quiet:
            click.echo(f"\r\x1b[K{text}", nl=False, err=True)

    try:
        yield show
    finally:
        show("")


def _how_often(record: SourceRecord) -> str:
    every = record.every_seconds
    interval = "on request" if every is None else f"every {every:g} s"
    return interval + (", deletes what vanished" if record.delete_missing else "")


def _tell(record: SourceRecord, failed: Any) -> None:
    if record.began_at is not None:
        click.echo("  it is being looked at")
    elif record.ended_at is None:
        click.echo("  not looked at yet")
    else:
        counts = [f"{record.counts[what]:,} {what}" for what in _ORDER if what in record.counts]
        summary = ", ".join(counts) or "nothing"
        click.echo(
            f"  {time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(record.ended_at))}  {summary}"
        )
    if record.failure is not None:
        click.secho(f"  {record.failure.detail}", fg="red")
        click.echo(f"  {record.failure.advice}")
    for path, failure in failed.items():
        click.secho(f"  {path}: {failure.detail}", fg="red")
        click.echo(f"    {failure.advice}")


def _plain(failed: Any) -> list[dict[str, Any]]:
    return [{"path": path, **failure.as_json()} for path, failure in failed.items()]
