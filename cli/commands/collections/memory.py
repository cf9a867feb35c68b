"""`callslip memory`: shows, exports, imports and resets the memory of chunks."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Literal

import click

from callslip.cli.shared.options import collection_option
from callslip.cli.shared.output import as_json, emit, many, reporting, when
from callslip.cli.shared.server import connect, url_option
from callslip.client.requests import line_of, plain
from callslip.errors import InvalidRequest

LINES_TOGETHER = 500
"""Lines of a file in one request."""

tenant_option = click.option("--tenant", default="", help="Whose, in a collection with tenants.")


@click.group(name="memory")
def memory_group() -> None:
    """Show, move or delete the memory of the chunks that helped with earlier questions.

    Feedback (POST /v1/feedback) makes helpful chunks rank higher for similar questions, and so do
    approved answers, once something independent agrees with them. Each collection, and each tenant
    of a collection, has its own memory.

    \b
    Example:  callslip memory show -c handbook
              callslip memory export learned.jsonl -c handbook
              callslip memory reset -c handbook --tenant north
    """


@memory_group.command()
@collection_option
@tenant_option
@click.option(
    "-n", "--limit", type=click.IntRange(1, 500), default=20, show_default=True, help="Most chunks."
)
@url_option
@as_json
@reporting
def show(collection: str, tenant: str, limit: int, url: str | None, json_out: bool) -> None:
    """Show the size of the memory and the most useful chunks.

    \b
    Example:  callslip memory show -c handbook -n 5
    """
    with connect(url) as client:
        memory = plain(client.show_memory(collection, tenant=tenant, limit=limit))
    if json_out:
        emit(memory)
        return
    outcomes = f"{memory['useful']:,} for and {memory['useless']:,} against them"
    click.echo(f"{many(memory['chunks'], 'chunk')} remembered, {outcomes}.")
    for chunk in memory["memories"]:
        last = chunk["last_useful_at"]
        click.echo(
            f"{chunk['chunk_id']}  utility {chunk['utility']:6.2f}"
            f"  {chunk['useful']} for, {chunk['useless']} against"
            f"{'' if last is None else f', last {when(last)}'}"
        )


@memory_group.command(name="export")
@click.argument("file", type=click.Path(dir_okay=False, writable=True, path_type=Path))
@collection_option
@tenant_option
@url_option
@as_json
@reporting
def export_memory(
    file: Path, collection: str, tenant: str, url: str | None, json_out: bool
) -> None:
    """Export the memory to FILE, a line of JSON for each chunk.

    \b
    Example:  callslip memory export learned.jsonl -c handbook
    """
    count = 0
    with connect(url) as client, _opened(file, "w") as out:
        for line in client.export_memory(collection, tenant=tenant):
            out.write(line_of(line))
            count += 1
    if json_out:
        emit({"chunks": count, "file": str(file)})
    else:
        click.echo(f"{many(count, 'chunk')} written to {file}")


@memory_group.command(name="import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@collection_option
@tenant_option
@url_option
@as_json
@reporting
def import_memory(
    file: Path, collection: str, tenant: str, url: str | None, json_out: bool
) -> None:
    """Import the memory that `callslip memory export` wrote; it replaces that of the same chunks.

    Chunks that the collection does not have are skipped. A repeated import changes nothing.

    \b
    Example:  callslip memory import learned.jsonl -c handbook
    """
    total = {"chunks": 0, "unknown": 0}
    with connect(url) as client, _opened(file, "r") as lines:
        while some := list(islice(lines, LINES_TOGETHER)):
            answer = plain(client.import_memory(collection, some, tenant=tenant))
            total = {name: total[name] + answer[name] for name in total}
    if json_out:
        emit(total)
        return
    click.echo(f"{many(total['chunks'], 'chunk')} taken in")
    if total["unknown"]:
        click.echo(f"{many(total['unknown'], 'chunk')} unknown in {collection}, left out")


@memory_group.command()
@collection_option
@tenant_option
@click.option("--yes", is_flag=True, help="Do not ask.")
@url_option
@as_json
@reporting
def reset(collection: str, tenant: str, yes: bool, url: str | None, json_out: bool) -> None:
    """Delete the memory of all chunks. An earlier export can restore it.

    \b
    Example:  callslip memory reset -c handbook --yes
    """
    if not yes:
        click.confirm(f"Forget what {collection} has learned?", abort=True, err=True)
    with connect(url) as client:
        answer = plain(client.reset_memory(collection, tenant=tenant))
    if json_out:
        emit(answer)
    else:
        click.echo(f"{many(answer['chunks'], 'chunk')} forgotten")


@contextmanager
def _opened(file: Path, mode: Literal["r", "w"]) -> Iterator[IO[str]]:
    """Open a file of UTF-8. Raises InvalidRequest if it is of another form or cannot be opened."""
    try:
        with file.open(mode, encoding="utf-8") as opened:
            yield opened
    except UnicodeDecodeError:
        raise InvalidRequest(
            f"{file} is not UTF-8", hint="Name a file that `callslip memory export` wrote."
        ) from None
    except OSError as error:
        raise InvalidRequest(
            f"{file} cannot be {'written' if mode == 'w' else 'read'}: {error.strerror}",
            hint="Name a file in a folder that is there, may be used and has room.",
        ) from error
