"""`callslip usage`: what language models have used for answers, and what it cost."""

from collections.abc import Iterator
from typing import Any

import click

from cli.desk import connect, url_option
from cli.output import aligned, as_json, emit, many, named, reporting

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

    Costs are tokens at the prices that llm.input_price and llm.output_price have now. Of one
    collection without tenants, or of one tenant, it also says what is left of today's ceiling.

    \b
    Example:  callslip usage
              callslip usage -c handbook --days 7
    """
    with connect(url) as client:
        found = client.get("/v1/usage", collection=collection, tenant=tenant, days=days)
    if json_out:
        emit(found)
        return
    if found["usage"]:
        for line in aligned([HEAD, *_rows(found)], left=2):
            click.echo(line)
    else:
        click.echo(f"No language model was used in {many(days, 'day')}.")
    if (today := found["today"]) and today["left"] is not None:
        click.echo(f"Today {today['left']:,} of {today['ceiling']:,} tokens are left.")


def _rows(found: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for used in found["usage"]:
        yield (used["day"], used["model"], *_numbers(used))
    yield ("total", "", *_numbers(found["total"]))


def _numbers(used: dict[str, Any]) -> tuple[str, ...]:
    counts = (used["calls"], used["input_tokens"], used["output_tokens"])
    return (*(f"{count:,}" for count in counts), f"{used['cost']:,.4f}")
