"""`callslip backup` and `restore`: use the ledger, the blobs and the stores directly."""

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

import click
from pydantic import SecretStr

from callslip.cli.shared.installation import (
    Turns,
    backup_lock,
    counter,
    key_file_option,
    open_context,
    open_destination,
)
from callslip.cli.shared.options import not_empty
from callslip.cli.shared.output import as_json, emit, figures, many, reporting
from callslip.config import keys, load
from callslip.config.masking import shown
from callslip.config.settings import (
    MEGABYTE,
    BlobSettings,
    LedgerSettings,
    Settings,
    StoreKind,
    TfidfSettings,
)
from callslip.stores.backup import manifest as manifests
from callslip.stores.backup.destination import Destination
from callslip.stores.backup.making import Made, Progress, make_backup
from callslip.stores.backup.restoring import Restored
from callslip.stores.registry import kinds
from callslip.tasks.composition import Context
from callslip.workers.local_access import GREETED
from callslip.workers.local_settings import open_ledger, placed_settings
from callslip.workers.supervision import runfile, services
from callslip.workers.supervision.supervisor import Supervisor


@click.command(name="backup")
@click.argument("destination", required=False, callback=not_empty)
@key_file_option
@click.option(
    "--keep",
    type=click.IntRange(min=0),
    help="Retain the newest of this many days and weeks; 0: all. Default backup.keep.",
)
@click.option("--list", "listing", is_flag=True, help="List the backups instead of making one.")
@as_json
@reporting
def backup_command(
    destination: str | None, key_file: Path | None, keep: int | None, listing: bool, json_out: bool
) -> None:
    """Copy everything that must last to DESTINATION, a folder or a URL such as s3://bucket/prefix.

    Ledger, conversations, files, options, sources, webhooks, memory, and the settings without
    secrets, while Callslip runs. Only what DESTINATION lacks is copied. After an interruption the
    same command continues. DESTINATION is backup.to by default; encrypted where a passphrase is
    set. One installation per DESTINATION.

    \b
    Example:  callslip backup /mnt/backups/callslip
              callslip backup s3://bucket/callslip --key-file ~/callslip.key --keep 14
    """
    settings = placed_settings()
    if listing:
        opened = open_destination(settings, destination, key_file)
        _tell_list(opened, json_out)
        return
    open_ledger(settings).close()  # raises an error instead of making an empty one
    with backup_lock(settings), open_context(settings) as context, counter(json_out) as progress:
        opened = open_destination(settings, destination, key_file, make=True)
        made = make_backup(
            context.backend,
            Turns(context),
            opened,
            _shown(load().settings),
            keep=settings.backup.keep if keep is None else keep,
            progress=progress,
        )
    _tell_made(made, opened.url, json_out)


@click.command(name="restore")
@click.argument("destination", required=False, callback=not_empty)
@key_file_option
@click.option("--backup", "name", metavar="NAME", help="Its name or its beginning; default newest.")
@click.option(
    "--to",
    "store",
    type=click.Choice(get_args(StoreKind)),
    help="The store of all collections; default their own where it is set up.",
)
@click.option("--verify", is_flag=True, help="Restore into a temporary folder, report, remove it.")
@as_json
@reporting
def restore_command(
    destination: str | None,
    key_file: Path | None,
    name: str | None,
    store: str | None,
    verify: bool,
    json_out: bool,
) -> None:
    """Restore a backup from DESTINATION into an empty installation, which is stopped.

    The ledger may be SQLite or PostgreSQL, whatever it was. The stores are filled from the files,
    nothing is embedded anew; then row counts, chunk counts and the backup's probe queries are
    compared. After an interruption the same command continues. Exit code 1 if something differs.

    \b
    Example:  callslip restore /mnt/backups/callslip --verify
              CALLSLIP_DATA_DIR=new callslip restore /mnt/backups/callslip
    """
    settings = placed_settings()
    opened = open_destination(settings, destination, key_file)
    whole = manifests.newest(opened, name)
    with counter(json_out) as progress:
        if verify:
            report = _verify(settings, opened, whole, progress)
        else:
            report = _restore(settings, opened, whole, store, progress)
    _tell_restored(report, json_out, verify=verify)
    sys.exit(1 if report.faults or report.lost else 0)


def _restore(
    settings: Settings, opened: Destination, name: str, store: str | None, progress: Progress
) -> Restored:
    data_dir = settings.data_dir.absolute()
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    to = store or settings.store
    with runfile.locked(data_dir), _chroma(settings, to) as running:
        only: frozenset[str] = frozenset() if store else frozenset(kinds(running))
        with open_context(running) as context:
            report = _restored(context, opened, name, to, only, progress)
    (data_dir / GREETED).touch()  # no examples come into what was restored
    return report


def _verify(settings: Settings, opened: Destination, name: str, progress: Progress) -> Restored:
    """Restore into a temporary folder with SQLite and the TF-IDF store, which need no server."""
    with tempfile.TemporaryDirectory(prefix="callslip-verify-") as folder:
        temporary = settings.model_copy(
            update={
                "data_dir": Path(folder),
                "ledger": LedgerSettings(),
                "blobs": BlobSettings(),
                "tfidf": TfidfSettings(),
                "store": "tfidf",
            }
        )
        with open_context(temporary, ("tfidf",)) as context:
            report = _restored(context, opened, name, "tfidf", frozenset({"tfidf"}), progress)
    return report


def _restored(
    context: Context,
    opened: Destination,
    name: str,
    to: str,
    only: frozenset[str],
    progress: Progress,
) -> Restored:
    from callslip.ingestion.maintenance.rebuild import restore

    report = restore(
        context.backend, Turns(context), opened, name, to=to, only=only, progress=progress
    )
    before, here = manifests.read(opened, name).settings, _shown(load().settings)
    report.settings = {
        key: (before[key], value)
        for key, value in here.items()
        if before.get(key) not in (None, value)
    }
    return report


@contextmanager
def _chroma(settings: Settings, to: str) -> Iterator[Settings]:
    """Run Chroma's server in the data folder, as `callslip up` does, if the store needs it."""
    if settings.chroma.url is not None or to != "chroma":
        yield settings
        return
    (port,) = services.free_ports(1)
    data_dir = settings.data_dir.absolute()
    tenant = services.chroma_tenant()
    part = services.chroma(data_dir, port, tenant)
    supervisor = Supervisor([part], data_dir / "logs", lambda _: None)
    with supervisor:
        supervisor.start()
        url = f"http://{services.LOOPBACK}:{port}"
        chroma = settings.chroma.model_copy(update={"url": url, "tenant": SecretStr(tenant)})
        yield settings.model_copy(update={"chroma": chroma})


def _shown(settings: Settings) -> dict[str, str]:
    """Every setting by its key, without secrets."""
    return {key: shown(key, value) for key, value in keys.values(settings).items()}


def _tell_list(opened: Destination, json_out: bool) -> None:
    backups: list[dict[str, Any]] = []
    for name in opened.names(manifests.FOLDER):
        manifest = manifests.read(opened, name)
        rows = {table: manifest.table(table).rows for table in ("collections", "documents")}
        took = round(manifest.ended_at - manifest.began_at, 1)
        backups.append({"name": name, "callslip": manifest.callslip, "seconds": took, **rows})
    if json_out:
        emit(backups)
        return
    for each in backups:
        documents = many(each["documents"], "document")
        click.echo(f"{each['name']}  {documents}, {each['seconds']} s, Callslip {each['callslip']}")


def _tell_made(made: Made, url: str, json_out: bool) -> None:
    if json_out:
        emit(asdict(made) | {"seconds": round(made.seconds, 2)})
        return
    click.echo(f"{made.name} is in {url}, made in {made.seconds:.1f} s")
    click.echo(
        f"  {many(made.documents, 'document')}, {many(made.files, 'file')},"
        f" {many(made.conversations, 'conversation')};"
        f" new: {many(made.written, 'file')}, {made.bytes / MEGABYTE:,.1f} MB"
    )
    if made.gone:
        click.echo(f"  {many(len(made.gone), 'document')} deleted meanwhile")
    if made.removed_backups:
        click.echo(f"  removed: {many(made.removed_backups, 'older backup')}")
    for document_id in made.missing:
        click.secho(f"  document {document_id} lacks its data: `callslip audit`", fg="yellow")
    for note in made.notes:
        click.secho(f"  {note}", fg="yellow")


def _tell_restored(report: Restored, json_out: bool, *, verify: bool) -> None:
    if json_out:
        emit(asdict(report) | {"seconds": round(report.seconds, 2)})
        return
    done = "can be restored, which took" if verify else "is restored, in"
    click.echo(f"{report.name} {done} {report.seconds:.1f} s")
    click.echo(
        f"  {many(report.documents, 'document')}, {many(report.files, 'file')},"
        f" {many(report.chunks, 'chunk')}, {many(report.conversations, 'conversation')}"
    )
    if report.purged:
        click.echo(f"  purged again: {many(report.purged, 'receipt')}")
    for collection, retrievers in report.probes.items():
        for retriever, values in retrievers.items():
            click.echo(f"  probes of {collection}, {retriever}: {figures(values)}")
    if not verify:
        for key, (before, here) in report.settings.items():
            click.echo(f"  setting {key}: {here} here, {before} in the backup")
    for fault in report.faults:
        click.secho(f"  {fault}", fg="red")
    for document_id in report.lost:
        click.secho(f"  document {document_id} lacks some of its data", fg="red")
