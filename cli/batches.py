"""How far a batch is, as the command line tells it."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import click

from cli.client import Client

UNDERWAY = ("working", "waiting", "stalled")
STATES = ("live", "failed", "superseded", "deleted", *UNDERWAY)


def get_batch(client: Client, batch_id: str) -> dict[str, Any]:
    """The desk's report of a batch."""
    return client.get(f"/v1/batches/{quote(batch_id, safe='')}")


def batch_documents(client: Client, batch_id: str, **only: str) -> Iterator[dict[str, Any]]:
    """Every document of a batch."""
    path, after = f"/v1/batches/{quote(batch_id, safe='')}/documents", None
    while True:
        page = client.get(path, limit=1000, after=after, **only)
        yield from page["documents"]
        after = page["next_after"]
        if after is None:
            return


def pace(batch: dict[str, Any]) -> str:
    """What is worth knowing beside the number that is done, e.g. `3 failed, about 2 min left`."""
    told = []
    if failed := batch["states"].get("failed"):
        told.append(f"{failed:,} failed")
    if batch["left"] and batch["documents_per_minute"] is not None:
        told.append(
            f"{batch['documents_per_minute']:.0f} documents and"
            f" {batch['chunks_per_minute']:.0f} passages a minute"
        )
    if batch["seconds_left"] is not None:
        told.append(f"about {duration(batch['seconds_left'])} left")
    return ", ".join(told)


def duration(seconds: float) -> str:
    """A time as a person says it, no more exact than it is known."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 90 * 60:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h"


def tell_batch(batch: dict[str, Any]) -> None:
    """Print a report, and each document that failed with what to do."""
    of = max(batch["expected"] or 0, batch["submitted"])
    took = "" if batch["seconds"] is None else f" in {duration(batch['seconds'])}"
    click.secho(f"{batch['batch_id']}: {of - batch['left']:,} of {of:,} done{took}", bold=True)
    for state in STATES:
        if count := batch["states"].get(state):
            click.echo(f"  {state:10} {count:>7,}")
    if batch["unchanged"]:
        click.echo(f"  {batch['unchanged']:,} of them unchanged")
    if unsent := of - batch["submitted"]:
        click.echo(f"  {'not sent':10} {unsent:>7,}")
    if batch["left"]:
        click.echo(f"  {pace(batch) or 'nothing was done in the last minutes'}")
    for document in batch["failures"]:
        click.secho(f"  {document['name']}: {document['error']['detail']}", fg="red")
        click.echo(f"    {document['error']['advice']}")
