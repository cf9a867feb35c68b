"""`callslip ingest`: sends files, folders and globs and waits until the documents are live."""

import sys
from dataclasses import replace
from typing import Any

import click

from callslip.cli.shared.options import (
    allow_duplicate_option,
    collection_option,
    not_empty,
    properties_option,
    readers_option,
    source_url_option,
    store_option,
    vectors_option,
)
from callslip.cli.shared.output import as_json, emit, reporting
from callslip.cli.shared.paths import find_files
from callslip.cli.shared.server import connect, url_option
from callslip.cli.shared.upload import form_fields, ingest, show_report, source_urls
from callslip.vocabulary import PRIORITIES, StoreKind


@click.command(name="ingest")
@click.argument("paths", nargs=-1, required=True, callback=not_empty)
@collection_option
@store_option
@vectors_option(
    "A further vector of every chunk of a new collection, by an embedder of the server's settings;"
    " once for each."
)
@click.option("--tenant", default="", help="Whose files; makes a new collection one with tenants.")
@click.option(
    "--priority",
    type=click.IntRange(*PRIORITIES),
    default=0,
    help="Of the tenant's files that wait, a higher one goes first.",
)
@properties_option
@readers_option
@source_url_option
@allow_duplicate_option
@click.option(
    "--again",
    is_flag=True,
    help="Send unchanged files, too, so that the server stores a lost original again.",
)
@url_option
@as_json
@reporting
def ingest_command(
    paths: tuple[str, ...],
    collection: str,
    store: StoreKind | None,
    vectors: dict[str, str],
    tenant: str,
    priority: int,
    properties: dict[str, Any],
    readers: tuple[str, ...] | None,
    source_url: str | None,
    allow_duplicate: bool,
    again: bool,
    url: str | None,
    json_out: bool,
) -> None:
    """Send files, folders or globs and wait until they can be found.

    A document's name is the file's path below the named folder: a known name makes a new version,
    which has the properties of -p alone and drops what `callslip edit` set; the same content has
    no effect, and without -p keeps its properties. While the server's backlog
    is full, the command waits. All files are one batch; after Ctrl-C the server continues with the
    sent files, and `callslip status --batch` shows their progress. Exit code
    1 when a file failed.

    \b
    Example:  callslip ingest handbook.pdf policies/ 'faq/*.md' -c handbook
              callslip ingest rates.pdf -p doc_type=policy -p valid_from=2026-07-01
              callslip ingest salaries.xlsx --readers group:hr,user:ann
              callslip ingest policies/ --source-url https://intranet.example.org/policies/
              callslip ingest laws/ -c laws --vector meaning=bge
    """
    fields = form_fields(properties=properties, allow_duplicate=allow_duplicate)
    if readers is not None:
        fields["readers"] = readers
    files = find_files(paths)
    urls = source_urls(source_url, [file.name for file in files])
    sources = [replace(f, fields=fields | u) for f, u in zip(files, urls, strict=True)]
    with connect(url) as client:
        report = ingest(
            client,
            collection,
            sources,
            store=store,
            vectors=vectors,
            tenant=tenant,
            priority=priority,
            show_bar=not json_out,
            again=again,
        )
    if json_out:
        emit(report.as_json())
    else:
        show_report(report)
    sys.exit(1 if report.failed else 0)
