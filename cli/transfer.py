"""`callslip export`, `import` and `migrate`: on the ledger, the blobs and the stores themselves."""

import io
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import get_args

import click

from cli.output import as_json, emit, many, named, reporting
from config.settings import Settings, StoreKind
from stores.blobs import Blobs
from stores.contract import Store
from stores.registry import make_store
from stores.transfer import House, Progress, Report, export_collection, import_archive, migrate
from workers.placement import open_ledger, placed_settings

_STORE = click.Choice(get_args(StoreKind))


@click.command(name="export")
@click.argument("collection")
@click.argument("file", type=click.Path(dir_okay=False, writable=True, path_type=Path))
@as_json
@reporting
def export_command(collection: str, file: Path, json_out: bool) -> None:
    """Write COLLECTION with all it holds into FILE, an archive that `callslip import` reads.

    In it are documents with their tenants, versions, chunks and vectors, their originals and
    extracted texts. Searches and ingestion go on meanwhile. When it was stopped, the same command
    goes on where it stopped.

    \b
    Example:  callslip export handbook handbook.tar
    """
    with _house(placed_settings()) as house, _bar("Exporting", json_out) as progress:
        report = export_collection(house, collection, file, progress)
    _tell(report, f"{collection} is in {file}", json_out)


@click.command(name="import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--as", "name", callback=named, metavar="NAME", help="Its name here; default its own."
)
@click.option("--to", "store", type=_STORE, help="Its store here; default from the settings.")
@as_json
@reporting
def import_command(file: Path, name: str | None, store: str | None, json_out: bool) -> None:
    """Make the collection that `callslip export` wrote into FILE, and compare it with the archive.

    The whole file is looked over before anything is written. When it was stopped, the same command
    goes on where it stopped; what is here already is left as it is.

    \b
    Example:  callslip import handbook.tar
              callslip import handbook.tar --as handbook-2024 --to tfidf
    """
    settings = placed_settings()
    with _house(settings) as house, _bar("Importing", json_out) as progress:
        report = import_archive(
            house, file, name=name, to=store, default=settings.store, progress=progress
        )
    _tell(report, f"{report.collection} is here", json_out)


@click.command(name="migrate")
@click.argument("collection")
@click.option("--to", "store", type=_STORE, required=True, help="Where it is kept from then on.")
@click.option("--keep", is_flag=True, help="Leave the copy in the old store.")
@as_json
@reporting
def migrate_command(collection: str, store: str, keep: bool, json_out: bool) -> None:
    """Move COLLECTION to another store, compare both sides, and switch.

    Searches go on; new documents wait for a moment before the switch. When both sides differ
    nothing is switched. When it was stopped, the same command finishes the job.

    \b
    Example:  callslip migrate handbook --to tfidf
    """
    settings = placed_settings()
    with _house(settings) as house, _bar("Moving", json_out) as progress:
        report = migrate(
            house,
            collection,
            store,
            keep=keep,
            grace=settings.search.timeout_seconds,
            progress=progress,
            phase=(lambda _: None) if json_out else _say,
        )
    _tell(report, f"{collection} is kept in {store}", json_out)


def _say(phase: str) -> None:
    click.echo(f"\n{phase} …", err=True, nl=False)


@contextmanager
def _house(settings: Settings) -> Iterator[House]:
    """Everything of this installation, each store made when it is first asked for."""
    made: list[Store] = []

    @cache
    def store_of(kind: str) -> Store:
        made.append(make_store(settings, kind))
        return made[-1]

    ledger = open_ledger(settings)
    try:
        yield House(ledger, Blobs(settings.blobs_url), store_of)
    except KeyboardInterrupt:
        click.echo("\nStopped. The same command goes on where this one stopped.", err=True)
        sys.exit(130)
    finally:
        ledger.close()
        for store in made:
            store.close()


@contextmanager
def _bar(label: str, json_out: bool) -> Iterator[Progress]:
    """A bar with documents and chunks per second; on standard error, and none for programs."""
    begun = time.monotonic()
    chunks = 0
    shown_on = io.StringIO() if json_out else sys.stderr
    speeds: list[str] = []
    with click.progressbar(
        speeds, 1, label, show_pos=True, item_show_func=_shown, file=shown_on
    ) as bar:

        def progress(total: int, more: int) -> None:
            nonlocal chunks
            chunks += more
            bar.length = max(total, bar.pos + 1)
            seconds = max(time.monotonic() - begun, 1e-3)
            speed = f"{(bar.pos + 1) / seconds:.1f} documents/s, {chunks / seconds:.1f} chunks/s"
            bar.update(1, speed)

        yield progress


def _shown(speed: str | None) -> str | None:
    return speed


def _tell(report: Report, done: str, json_out: bool) -> None:
    if json_out:
        emit(asdict(report) | {"seconds": round(report.seconds, 2)})
        return
    documents, chunks = many(report.documents, "document"), many(report.chunks, "chunk")
    click.echo(f"{done}: {documents}, {chunks} in {report.seconds:.1f} s")
    if report.skipped:
        click.echo(f"{many(report.skipped, 'document')} of them there already")
    if report.left_out:
        click.echo(f"{many(report.left_out, 'document')} without a live version left out")
    for tenant, counts in report.tenants.items():
        told = ", ".join(f"{what} {count:,}" for what, count in counts.items())
        click.echo(f"  {tenant or 'all'}: {told}")
    for leg, found in report.probes.items():
        told = ", ".join(f"{name} {_figure(value)}" for name, value in found.items())
        click.echo(f"  probes of the {leg} leg: {told}")
    for note in report.notes:
        click.echo(f"  {note}")


def _figure(value: float | list[float]) -> str:
    """A number, or one of the old side and one of the new."""
    if isinstance(value, list):
        return f"{value[0]:g} before, {value[1]:g} now"
    return f"{value:g}"
