"""The progress of a batch, for the command line."""

from collections.abc import Iterator
from typing import Any

import click

from callslip.client import Client
from callslip.client.requests import plain
from callslip.vocabulary import ItemState

UNDERWAY = ("working", "waiting", "stalled")
STATES = ("live", "failed", "superseded", "deleted", *UNDERWAY)


def get_batch(client: Client, batch_id: str) -> dict[str, Any]:
    """Get the server's report of a batch."""
    report: dict[str, Any] = plain(client.get_batch(batch_id))
    return report


def batch_documents(
    client: Client, batch_id: str, state: ItemState | None = None
) -> Iterator[dict[str, Any]]:
    """Yield every document of a batch."""
    after = None
    while True:
        page = client.list_batch_documents(batch_id, state=state, after=after, limit=1000)
        yield from map(plain, page.documents)
        after = page.next_after
        if after is None:
            return


def pace(batch: dict[str, Any]) -> str:
    """Failures and time left, shown after the document count: `3 failed, about 2 min left`."""
    parts = []
    if failed := batch["states"].get("failed"):
        parts.append(f"{failed:,} failed")
    if batch["left"] and batch["documents_per_minute"] is not None:
        parts.append(
            f"{batch['documents_per_minute']:.0f} documents and"
            f" {batch['chunks_per_minute']:.0f} passages a minute"
        )
    if batch["seconds_left"] is not None:
        parts.append(f"about {duration(batch['seconds_left'])} left")
    return ", ".join(parts)


def duration(seconds: float) -> str:
    """A duration in words, rounded to the precision of the estimate."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 90 * 60:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h"


def tell_batch(batch: dict[str, Any]) -> None:
    """Print a report, and each failed document with its advice."""
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
