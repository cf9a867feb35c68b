"""`callslip usage`: tokens and costs of language models for answers."""

from collections.abc import Iterator
from typing import Any

import click

from callslip.cli.shared.output import aligned, as_json, emit, many, named, reporting
from callslip.cli.shared.server import connect, url_option
from callslip.client.requests import plain

HEAD = ("day", "model", "calls", "input tokens", "output tokens", "cost")


@click.command(name="usage")
@click.option("-c", "--collection", callback=named, help="Of a collection; default: of all.")
@click.option("--tenant", help="Of a tenant of it; default: of all.")
@click.option(
    "--days",
    type=click.IntRange(1, 400),
    default=30,
    show_default=True,
    help="How far back, in days of UTC.",
)
@url_option
@as_json
@reporting
def usage_command(
    collection: str | None, tenant: str | None, days: int, url: str | None, json_out: bool
) -> None:
    """Show what language models have used for answers, by day, and what it cost.

    Costs are tokens at the current prices llm.input_price and llm.output_price. For one collection
    without tenants, or for one tenant, it also prints the rest of today's token budget.

    \b
    Example:  callslip usage
              callslip usage -c handbook --days 7
    """
    with connect(url) as client:
        usage = plain(client.show_usage(collection=collection, tenant=tenant, days=days))
    if json_out:
        emit(usage)
        return
    if usage["usage"]:
        for line in aligned([HEAD, *_rows(usage)], left=2):
            click.echo(line)
    else:
        click.echo(f"No language model was used in {many(days, 'day')}.")
    if (today := usage["today"]) and today["left"] is not None:
        click.echo(f"Today {today['left']:,} of {today['ceiling']:,} tokens are left.")


def _rows(usage: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for used in usage["usage"]:
        yield (used["day"], used["model"], *_numbers(used))
    yield ("total", "", *_numbers(usage["total"]))


def _numbers(used: dict[str, Any]) -> tuple[str, ...]:
    counts = (used["calls"], used["input_tokens"], used["output_tokens"])
    return (*(f"{count:,}" for count in counts), f"{used['cost']:,.4f}")
