"""`callslip chunks`: list the chunks of a document, correct their text, preview cuts."""

import sys
from pathlib import Path
from typing import IO

import click

from callslip.cli.shared.options import collection_option
from callslip.cli.shared.output import as_json, emit, many, reporting, when
from callslip.cli.shared.server import connect, url_option
from callslip.client import Client, models
from callslip.client.requests import plain
from callslip.errors import ChunkNotFound, InvalidRequest

SHOWN_CHARACTERS = 300
"""Characters of a chunk that a list shows without `--full`."""

PASSAGE = 2
LEVELS = {0: "document", 1: "section", PASSAGE: "passage"}

LEFT_OUT = {
    "not-found": "the file does not have the original any more",
    "ambiguous": "the file has the original more than once",
    "already-right": "the file has the replacement",
}
"""Why a correction does not apply, in words."""


@click.group(name="chunks")
def chunks_group() -> None:
    """The chunks of documents: list them, correct their text, preview how a file is cut.

    \b
    Example:  callslip chunks list 1f0c…
              callslip chunks correct 1f0c… 9a3b --text "The fee is 10 euros."
              callslip chunks preview scan.pdf --maxlen 300
    """


@chunks_group.command(name="list")
@click.argument("document_id")
@click.option("--parents", is_flag=True, help="Also the sections and the document.")
@click.option("--full", is_flag=True, help="Print whole texts, with terms and properties.")
@url_option
@as_json
@reporting
def list_command(
    document_id: str, parents: bool, full: bool, url: str | None, json_out: bool
) -> None:
    """List the chunks of a document's live version in order of the text.

    Each with its id, pages, section, tokens, the stores and indexes that have it, and corrections.

    \b
    Example:  callslip chunks list 1f0c…
              callslip chunks list 1f0c… --parents --full
    """
    with connect(url) as client:
        chunks = client.chunks(document_id, parents=parents)
        if json_out:
            emit({"document_id": document_id, "chunks": [plain(chunk) for chunk in chunks]})
            return
        for chunk in chunks:
            _show(chunk, full=full)


@chunks_group.command(name="corrections")
@click.argument("document_id")
@url_option
@as_json
@reporting
def corrections_command(document_id: str, url: str | None, json_out: bool) -> None:
    """List the corrections of a document: the original, the replacement, and whether it applies.

    A new file under the document's name keeps the corrections whose original it has.

    \b
    Example:  callslip chunks corrections 1f0c…
    """
    with connect(url) as client:
        made = client.list_corrections(document_id)
    if json_out:
        emit(plain(made))
        return
    left_out = sum(each.left_out is not None for each in made.corrections)
    applies = f"{many(len(made.corrections), 'correction')}, {left_out} left out"
    click.echo(f"Version {made.version}: {applies}")
    for each in made.corrections:
        _show_correction(each)


@chunks_group.command(name="correct")
@click.argument("document_id")
@click.argument("chunk_id")
@click.option("--text", help="The whole corrected text of the chunk.")
@click.option(
    "--file", type=click.File(encoding="utf-8"), help="A file with it; - reads standard input."
)
@url_option
@as_json
@reporting
def correct_command(
    document_id: str,
    chunk_id: str,
    text: str | None,
    file: IO[str] | None,
    url: str | None,
    json_out: bool,
) -> None:
    """Correct the text of a chunk, such as an error of OCR; the beginning of its id is enough.

    Without --text and --file, your editor opens the text. A new version of the document has the
    correction; its other chunks keep their ids and vectors. `callslip rollback` takes it back.

    \b
    Example:  callslip chunks correct 1f0c… 9a3b
              callslip chunks correct 1f0c… 9a3b --file corrected.txt
    """
    if text is not None and file is not None:
        raise InvalidRequest("--text and --file are both named", hint="Name one of them.")
    with connect(url) as client:
        version = client.list_chunks(document_id, limit=1).version
        chunk = _chunk(client, document_id, chunk_id)
        new = text if file is None else file.read()
        if new is None:
            new = click.edit(chunk.text, extension=".txt")
        if new is None:
            click.echo("Nothing was changed.", err=True)
            sys.exit(1)
        answer = plain(client.correct_chunks(document_id, {chunk.chunk_id: new}, version=version))
    if json_out:
        emit(answer)
    elif answer["outcome"] == "unchanged":
        click.echo("The text is the same: nothing was changed.")
    else:
        click.echo(
            f"Version {answer['version']} has the correction;"
            f" `callslip status {document_id}` follows it."
        )


@chunks_group.command(name="preview")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@collection_option
@click.option("--tenant", help="A tenant of yours, if your key is limited to tenants.")
@click.option("--target", type=click.IntRange(32), help="The tokens that chunks should have.")
@click.option("--maxlen", type=click.IntRange(32), help="The most tokens of a chunk.")
@click.option("--overlap", type=click.IntRange(0), help="The most tokens that chunks share.")
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=100, show_default=True, help="Chunks to print."
)
@click.option("--full", is_flag=True, help="Print whole texts.")
@url_option
@as_json
@reporting
def preview_command(
    file: Path,
    collection: str,
    tenant: str | None,
    target: int | None,
    maxlen: int | None,
    overlap: int | None,
    limit: int,
    full: bool,
    url: str | None,
    json_out: bool,
) -> None:
    """Show how a file would be cut into chunks. Nothing is stored.

    Lengths that are left out are those of the server's settings. A file has at most 10 MB.

    \b
    Example:  callslip chunks preview handbook.pdf
              callslip chunks preview handbook.pdf --maxlen 900 --overlap 80 -c handbook
    """
    with connect(url) as client:
        if not json_out:
            click.echo(f"A worker reads {file.name} …", err=True)
        made = client.preview_file(
            collection,
            file,
            tenant=tenant,
            target_tokens=target,
            max_tokens=maxlen,
            overlap_tokens=overlap,
            limit=limit,
        )
    if json_out:
        emit(plain(made))
        return
    for chunk in made.chunks:
        notes = [f"{chunk.tokens} tokens", chunk.pages.short() if chunk.pages else ""]
        click.secho(
            f"{chunk.ordinal}  {'  '.join(filter(None, [*notes, chunk.section]))}", bold=True
        )
        _show_text(chunk.header + chunk.text, full=full)
    click.echo(
        f"{many(made.count, 'chunk')} of {many(made.tokens, 'token')} from {made.length:,}"
        f" characters: target {made.target_tokens}, at most {made.max_tokens},"
        f" overlap {made.overlap_tokens}"
    )
    if made.count > len(made.chunks):
        click.echo(f"The first {len(made.chunks)} are shown; --limit shows more.")
    for warning in made.warnings:
        click.secho(f"  {warning}", fg="yellow")


def _chunk(client: Client, document_id: str, chunk_id: str) -> models.Chunk:
    """The passage whose id begins so; InvalidRequest if several do."""
    chunks = client.chunks(document_id)
    matching = [chunk for chunk in chunks if chunk.chunk_id.startswith(chunk_id)]
    if not matching:
        raise ChunkNotFound(f"document {document_id!r} has no passage {chunk_id!r}")
    if len(matching) > 1:
        raise InvalidRequest(f"{len(matching)} passages have ids that begin with {chunk_id!r}")
    return matching[0]


def _show(chunk: models.Chunk, *, full: bool) -> None:
    what = "" if chunk.level == PASSAGE else f"{LEVELS.get(chunk.level, chunk.level)}"
    tokens = "" if chunk.tokens is None else f"{chunk.tokens} tokens"
    pages = chunk.pages.short() if chunk.pages else ""
    notes = "  ".join(filter(None, (what, pages, tokens, chunk.section)))
    click.secho(f"{chunk.chunk_id}  {notes}", bold=True)
    _show_text(chunk.text, full=full)
    for each in chunk.corrections:
        _show_correction(each)
    if full:
        click.echo(f"  terms: {' '.join(chunk.terms)}")
        for name, value in chunk.properties.items():
            click.echo(f"  {name}: {', '.join(value) if isinstance(value, list) else value}")
    where = (
        f"{store} ({', '.join(indexes) or 'missing'})" for store, indexes in chunk.stores.items()
    )
    click.echo(f"  in {'; '.join(where)}")


def _show_text(text: str, *, full: bool) -> None:
    shown = text if full or len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"
    for line in shown.splitlines():
        click.echo(f"  {line}")


def _show_correction(each: models.Correction) -> None:
    click.secho(f"  - {_line(each.original)}", fg="red")
    click.secho(f"  + {_line(each.replacement)}", fg="green")
    click.echo(f"    corrected {when(each.made_at)}, id {each.correction_id}")
    if each.left_out is not None:
        click.secho(f"    left out: {LEFT_OUT.get(each.left_out, each.left_out)}", fg="yellow")


def _line(text: str) -> str:
    return " ".join(text.split())
