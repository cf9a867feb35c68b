"""`callslip retry`, `versions` and `rollback`, and the list of `status --failed`."""

import re
import sys
from typing import Any

import click

from callslip.cli.shared.output import as_json, emit, many, reporting, when
from callslip.cli.shared.server import connect, url_option
from callslip.client import Client
from callslip.client.requests import plain
from callslip.errors import InvalidRequest

SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def age(text: str) -> float:
    """Convert `90s`, `15m`, `2h` or `3d` to seconds."""
    match = re.fullmatch(r"(\d{1,9})([smhd])", text)
    if match is None:
        raise click.BadParameter(f"{text!r} is no age such as 90s, 15m, 2h or 3d")
    return float(match[1]) * SECONDS[match[2]]


def show_failed(client: Client, collection: str | None, json_out: bool) -> None:
    """Print every document that failed for good, of a collection or of all, the latest first."""
    letters = list(dead_letters(client, collection))
    if json_out:
        emit({"dead_letters": letters})
        return
    for letter in letters:
        where = "/".join(filter(None, (letter["collection"], letter["tenant"])))
        click.echo(
            f"{letter['document_id']}  {when(letter['failed_at'])}  {where}  {letter['name']}"
        )
        crashes = f"{letter['crashes']} crash{'' if letter['crashes'] == 1 else 'es'}"
        tries = f"{many(letter['attempts'], 'attempt')}, {crashes}"
        click.secho(
            f"  {letter['error']['type']} in step {letter['step']} ({tries}):"
            f" {letter['error']['detail']}",
            fg="red",
        )
        click.echo(f"  {letter['error']['advice']}")
    where = "" if collection is None else f" in {collection!r}"
    click.echo("Try again:  callslip retry ID …" if letters else f"Nothing failed{where}.")


def dead_letters(client: Client, collection: str | None) -> Any:
    """All failed documents, of a collection or of all, read page by page."""
    after = None
    while True:
        page = client.list_dead_letters(collection=collection, limit=500, after=after)
        yield from map(plain, page.dead_letters)
        after = page.next_after
        if after is None:
            return


@click.command(name="retry")
@click.argument("document_ids", nargs=-1)
@click.option("-c", "--collection", help="Those of a collection.")
@click.option("--tenant", help="Those of a tenant.")
@click.option("--reason", help="Those that failed for this reason, e.g. worker-lost.")
@click.option("--older-than", type=age, metavar="AGE", help="Those that failed before, e.g. 2h.")
@click.option("--newer-than", type=age, metavar="AGE", help="Those that failed since, e.g. 2h.")
@click.option("--all", "all_", is_flag=True, help="All of them.")
@url_option
@as_json
@reporting
def retry_command(
    document_ids: tuple[str, ...],
    all_: bool,
    url: str | None,
    json_out: bool,
    **which: Any,
) -> None:
    """Try failed documents again, each from the step that failed.

    Select them by id or by common fields; `callslip status --failed` lists them. Exit code 1 if a
    document that is selected by id has not failed.

    \b
    Example:  callslip retry 1f0c…
              callslip retry --reason embedder-down --newer-than 1d
    """
    chosen = {name: value for name, value in which.items() if value is not None}
    if document_ids:
        chosen["document_ids"] = list(document_ids)
    if not chosen and not all_:
        raise InvalidRequest(
            "nothing says which documents", hint="Name ids or options, or say --all."
        )
    retried: list[str] = []
    with connect(url) as client:
        more = True
        while more:
            answer = client.retry_dead_letters(**chosen, all=all_ or None)
            retried += answer.retried
            more = answer.more
    left = sorted(set(document_ids) - set(retried))
    if json_out:
        emit({"retried": retried, "not_failed": left})
    else:
        click.echo(f"{len(retried)} waiting again; `callslip status` follows them.")
        for document_id in left:
            click.secho(f"  {document_id} has not failed, or does not exist", fg="red")
    sys.exit(1 if left else 0)


@click.command(name="versions")
@click.argument("document_id")
@url_option
@as_json
@reporting
def versions_command(document_id: str, url: str | None, json_out: bool) -> None:
    """Show the history of a document, newest version first.

    \b
    Example:  callslip versions 1f0c…
    """
    with connect(url) as client:
        history = plain(client.list_versions(document_id))
    if json_out:
        emit(history)
        return
    click.secho(history["name"], bold=True)
    for version in history["versions"]:
        notes = [version["state"], _origin(version)]
        if version["superseded_by"]:
            notes.append(f"by version {version['superseded_by']}")
        notes += _corrections(version["counts"].get("extract", {}))
        chunks = version["counts"].get("chunk", {}).get("chunks")
        click.echo(
            f"  {version['version']:3}  {when(version['submitted_at'])}  {version['sha256'][:12]}"
            f"  {version['size']:>10,} bytes  {'' if chunks is None else f'{chunks} chunks'}"
            f"  {', '.join(notes)}"
        )
        if version["error"]:
            click.secho(f"       {version['error']['detail']}", fg="red")


@click.command(name="rollback")
@click.argument("document_id")
@click.argument("version", type=click.IntRange(1))
@url_option
@as_json
@reporting
def rollback_command(document_id: str, version: int, url: str | None, json_out: bool) -> None:
    """Restore an older version of a document as its newest one, without a new embedding.

    Searches see the live version until the new version is live.

    \b
    Example:  callslip versions 1f0c…
              callslip rollback 1f0c… 2
    """
    with connect(url) as client:
        answer = plain(client.roll_back(document_id, version))
    if json_out:
        emit(answer)
    elif answer["outcome"] == "unchanged":
        click.echo(f"Version {version} is live already.")
    else:
        click.echo(
            f"Version {answer['version']} brings version {version} back;"
            f" `callslip status {document_id}` follows it."
        )


def _origin(version: dict[str, Any]) -> str:
    """How a version was made, in words."""
    match version["origin"]:
        case "restored":
            return f"brought back version {version['restores']}"
        case "edited":
            return f"edited {', '.join(version['edited'])}"
        case "cut":
            lengths = version["chunking"]
            return (
                f"cut into chunks of at most {lengths['max_tokens']} tokens that share"
                f" {lengths['overlap_tokens']}"
            )
        case "corrected":
            return f"{many(version['corrections_added'], 'correction')} added"
        case other:
            return str(other)


def _corrections(counts: dict[str, int]) -> list[str]:
    """The corrections of a version in words, from the counts of its extract step."""
    made, left_out = counts.get("corrections", 0), counts.get("corrections_left_out", 0)
    notes = [many(made, "correction")] if made else []
    return notes + ([f"{many(left_out, 'correction')} left out"] if left_out else [])
