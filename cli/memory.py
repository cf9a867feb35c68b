"""`callslip memory`: what was learned about chunks, shown, moved and forgotten."""

from itertools import islice
from pathlib import Path
from urllib.parse import quote

import click

from cli.desk import connect, url_option
from cli.looking_back import when
from cli.options import collection_option
from cli.output import as_json, emit, many, reporting

LINES_TOGETHER = 500
"""Of a file that are sent with one request."""

tenant_option = click.option("--tenant", default="", help="Whose, in a collection with tenants.")


@click.group(name="memory")
def memory_group() -> None:
    """See, move or forget which chunks helped with which questions.

    Feedback (POST /v1/feedback) and validated answers make such chunks rank higher for questions
    like those. Memory is kept for each collection, and each tenant of one, apart.

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
    """Show how much is remembered, and the most useful chunks.

    \b
    Example:  callslip memory show -c handbook -n 5
    """
    with connect(url) as client:
        found = client.get(_path(collection), tenant=tenant, limit=limit)
    if json_out:
        emit(found)
        return
    outcomes = f"{found['useful']:,} for and {found['useless']:,} against them"
    click.echo(f"{many(found['chunks'], 'chunk')} remembered, {outcomes}.")
    for chunk in found["memories"]:
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
    """Write all that is remembered into FILE, a line of JSON for each chunk.

    \b
    Example:  callslip memory export learned.jsonl -c handbook
    """
    count = 0
    with connect(url) as client, file.open("w", encoding="utf-8") as out:
        for line in client.lines(f"{_path(collection)}/export", tenant=tenant):
            out.write(line + "\n")
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
    """Take in what `callslip memory export` wrote, in the place of what is known of these chunks.

    Chunks that the collection does not have are left out. The same file again changes nothing.

    \b
    Example:  callslip memory import learned.jsonl -c handbook
    """
    total = {"chunks": 0, "unknown": 0}
    with connect(url) as client, file.open(encoding="utf-8") as lines:
        while some := list(islice(lines, LINES_TOGETHER)):
            answer = client.send_lines(f"{_path(collection)}/import", some, tenant=tenant)
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
    """Forget all that is remembered of chunks. An export before it can bring it back.

    \b
    Example:  callslip memory reset -c handbook --yes
    """
    if not yes:
        click.confirm(f"Forget what {collection} has learned?", abort=True, err=True)
    with connect(url) as client:
        answer = client.post(f"{_path(collection)}/reset", {"tenant": tenant})
    if json_out:
        emit(answer)
    else:
        click.echo(f"{many(answer['chunks'], 'chunk')} forgotten")


def _path(collection: str) -> str:
    return f"/v1/collections/{quote(collection, safe='')}/memory"
