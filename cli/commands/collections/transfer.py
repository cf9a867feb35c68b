"""`callslip export`, `import` and `migrate`: use the ledger, the blobs and the stores directly."""

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

from callslip.cli.shared.options import vectors_option
from callslip.cli.shared.output import as_json, aside, emit, figures, many, named, reporting
from callslip.config.settings import Settings, StoreKind
from callslip.stores.backend import Backend
from callslip.stores.blobs import Blobs
from callslip.stores.contract import Store
from callslip.stores.registry import make_store
from callslip.stores.transfer import (
    Progress,
    Report,
    export_collection,
    import_archive,
    migrate,
)
from callslip.workers.local_settings import open_ledger, placed_settings

_STORE = click.Choice(get_args(StoreKind))


@click.command(name="export")
@click.argument("collection")
@click.argument("file", type=click.Path(dir_okay=False, writable=True, path_type=Path))
@as_json
@reporting
def export_command(collection: str, file: Path, json_out: bool) -> None:
    """Write COLLECTION with all its documents into FILE, an archive for `callslip import`.

    The archive has the documents with their tenants, versions, chunks and vectors, their originals
    and extracted texts. Searches and ingestion continue meanwhile. After an interruption the same
    command continues.

    \b
    Example:  callslip export handbook handbook.tar
    """
    with _backend(placed_settings()) as backend, _bar("Exporting", json_out) as progress:
        report = export_collection(backend, collection, file, progress)
    _tell(report, f"{collection} is in {file}", json_out)


@click.command(name="import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--as",
    "name",
    callback=named,
    metavar="NAME",
    help="Its name here; default its own. Not for a second copy in the installation that has it.",
)
@click.option("--to", "store", type=_STORE, help="Its store here; default from the settings.")
@as_json
@reporting
def import_command(file: Path, name: str | None, store: str | None, json_out: bool) -> None:
    """Make the collection that `callslip export` wrote into FILE, and compare it with the archive.

    The whole file is checked before anything is written. After an interruption the same command
    continues; objects that exist already stay as they are. Documents keep their ids, and a document
    belongs to one collection: for another name in the installation that FILE comes from, delete the
    collection there first (`callslip delete -c NAME --all`).

    \b
    Example:  callslip import handbook.tar
              callslip import handbook.tar --as handbook-2024 --to tfidf
    """
    settings = placed_settings()
    with _backend(settings) as backend, _bar("Importing", json_out) as progress:
        report = import_archive(
            backend, file, name=name, to=store, default=settings.store, progress=progress
        )
    _tell(report, f"{report.collection} is here", json_out)


@click.command(name="migrate")
@click.argument("collection")
@click.option("--to", "store", type=_STORE, required=True, help="The new store of the collection.")
@click.option("--keep", is_flag=True, help="Leave the copy in the old store.")
@as_json
@reporting
def migrate_command(collection: str, store: str, keep: bool, json_out: bool) -> None:
    """Move COLLECTION to another store, compare both sides, and switch.

    Searches continue; new documents wait for a moment before the switch. If both sides differ, the
    collection stays in its store. After an interruption the same command continues.

    \b
    Example:  callslip migrate handbook --to tfidf
    """
    settings = placed_settings()
    with _backend(settings) as backend, _bar("Moving", json_out) as progress:
        report = migrate(
            backend,
            collection,
            store,
            keep=keep,
            grace=settings.search.timeout_seconds,
            progress=progress,
            phase=(lambda _: None) if json_out else _say,
        )
    _tell(report, f"{collection} is in {store} now", json_out)


@click.command(name="reindex")
@click.argument("collection")
@vectors_option(
    "Make this vector by this embedder of the settings, also one that the collection does not have"
    " yet; once for each."
)
@as_json
@reporting
def reindex_command(collection: str, vectors: dict[str, str], json_out: bool) -> None:
    """Make the terms and vectors of COLLECTION anew, compare both forms, and switch.

    The embedder is that of the settings, the analyzer that of the collection's options in this
    version. Named vectors keep their models, unless --vector names another embedder. Passages also
    get the ids and times that filters need, and valid_from if the options say so. Searches continue
    at the present form; new documents wait for a moment before the switch. After an interruption
    the same command continues.

    \b
    Example:  callslip reindex handbook
              callslip reindex handbook --vector meaning=bge
    """
    from callslip.ingestion.maintenance.reindex import Remaker, embedders_of, reindex
    from callslip.models.registry import (
        make_analyzer,
        make_embedder,
        make_further_embedders,
        make_tokenizer,
    )

    settings = placed_settings()
    embedder = make_embedder(settings)
    further = make_further_embedders(settings, embedder)
    with _backend(settings) as backend, _bar("Reindexing", json_out) as progress:
        schema = backend.ledger.collections.get(collection).schema
        remaker = Remaker(
            embedder,
            make_tokenizer(settings),
            make_analyzer(settings.language_codes),
            embedders_of(schema, vectors, further),
        )
        report = reindex(
            backend,
            collection,
            remaker,
            grace=settings.search.timeout_seconds,
            progress=progress,
            phase=(lambda _: None) if json_out else _say,
        )
    _tell(report, f"{collection} is built anew", json_out)


def _say(phase: str) -> None:
    aside(f"{phase} …")


@contextmanager
def _backend(settings: Settings) -> Iterator[Backend]:
    """The backend of this installation; each store is opened at its first use."""
    made: list[Store] = []

    @cache
    def store_of(kind: str) -> Store:
        made.append(make_store(settings, kind))
        return made[-1]

    ledger = open_ledger(settings)
    try:
        yield Backend(
            settings, ledger, Blobs(settings.blobs_url, settings.blobs.endpoint), store_of
        )
    except KeyboardInterrupt:
        click.echo("\nStopped. The same command goes on where this one stopped.", err=True)
        sys.exit(130)
    finally:
        ledger.close()
        for store in made:
            store.close()


@contextmanager
def _bar(label: str, json_out: bool) -> Iterator[Progress]:
    """A bar with documents and chunks per second on standard error; none with --json."""
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
        sizes = ", ".join(f"{what} {count:,}" for what, count in counts.items())
        click.echo(f"  {tenant or 'all'}: {sizes}")
    for retriever, values in report.probes.items():
        click.echo(f"  probes of the {retriever} retriever: {figures(values)}")
    for note in report.notes:
        click.echo(f"  {note}")
