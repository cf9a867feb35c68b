"""`callslip search`: prints the hits of a question."""

from typing import Any, get_args

import click

from callslip.cli.shared.conditions import conditions
from callslip.cli.shared.not_in_force import tell_not_in_force
from callslip.cli.shared.options import as_of_option, collection_option
from callslip.cli.shared.output import as_json, emit, reporting, shortened
from callslip.cli.shared.server import connect, url_option
from callslip.client.requests import plain
from callslip.messages.search import Pages, TimeClamp
from callslip.vocabulary import WITHOUT_EXPLORATION, Fusion

SHOWN = 300
"""The most characters of a hit's text."""

NAMES = {"prior": "facets"}
"""Parts of a score that the command names otherwise than the API."""


@click.command(name="search")
@click.argument("query")
@collection_option
@click.option(
    "-n", "--top", type=click.IntRange(1), default=10, show_default=True, help="Most hits to show."
)
@click.option("--tenant", help="Whose documents, in a collection with tenants.")
@click.option(
    "--alpha",
    type=click.FloatRange(0, 1),
    help="Weight of meaning: 0 words only, 1 meaning only. Default: chosen for the question.",
)
@click.option(
    "--vector", metavar="NAME", help="The vector to compare, in a collection with several."
)
@click.option(
    "--fusion", type=click.Choice(get_args(Fusion)), help="How the retrievers' hits are merged."
)
@click.option(
    "-w",
    "--where",
    multiple=True,
    metavar="CONDITION",
    help="What must hold, e.g. doc_type=policy, 'year>=2024' or 'lang in=en,ko'.",
)
@as_of_option
@click.option(
    "--explain",
    is_flag=True,
    help="Say what every hit's score is made of; `facets` is the `prior` of the API.",
)
@url_option
@as_json
@reporting
def search_command(
    query: str,
    collection: str,
    top: int,
    tenant: str | None,
    alpha: float | None,
    vector: str | None,
    fusion: str | None,
    where: tuple[str, ...],
    as_of: str | None,
    explain: bool,
    url: str | None,
    json_out: bool,
) -> None:
    """Search a collection by meaning and by words, in English or Korean.

    \b
    Example:  callslip search "출산 장려금은 얼마인가요?"
              callslip search "travel expenses" -n 3 -w doc_type=policy
              callslip search "parental leave" --as-of 2019-12-31 --explain
    """
    request: dict[str, Any] = {
        "collection": collection,
        "query": query,
        "top": top,
        "tenant": tenant,
        "alpha": alpha,
        "vector_name": vector,
        "fusion": fusion,
        "as_of": as_of,
        "explain": explain or None,
        "having_all": conditions(where) or None,
        "ranking": WITHOUT_EXPLORATION,
        "count_not_in_force": True,
    }
    with connect(url) as client:
        response = plain(client.search(**request))
    if json_out:
        emit(response)
        return
    for left, reason in response["left_out"].items():
        click.secho(f"Without the {left} retriever: {reason}", fg="yellow", err=True)
    if (as_of_used := response["as_of"])["at"]:
        words = f" (“{as_of_used['words']}”)" if as_of_used["words"] else ""
        day = TimeClamp.model_validate(as_of_used).day(as_of)
        click.secho(f"In force on {day}{words}", dim=True, err=True)
        tell_not_in_force(response, as_of)
    if explain:
        click.secho(_weight(response), dim=True, err=True)
    if response["hotset"]:
        click.secho("From the hotset: they helped with such a question.", dim=True, err=True)
    if not response["hits"]:
        click.echo("Nothing found.")
    for hit in response["hits"]:
        click.secho(f"{hit['rank']}. {hit['title']}", bold=True, nl=False)
        pages = f", {Pages(**hit['pages']).short()}" if hit.get("pages") else ""
        click.echo(f"  {hit['heading']}{pages}  ({hit['score']:.3f}{_why(hit['legs'])})")
        if reasons := hit["reasons"]:
            click.secho(f"   {_parts(reasons)}", dim=True)
        if hit.get("within"):
            click.secho(f"   in {hit['within']}", dim=True)
        if hit.get("source_url"):
            click.secho(f"   {hit['source_url']}", dim=True)
        click.echo(f"   {shortened(hit['text'], SHOWN)}\n")


def _weight(response: dict[str, Any]) -> str:
    line = f"Weight of meaning {response['alpha']:.2f}, of words {1 - response['alpha']:.2f}"
    if matched := response["matched"]:
        line += (
            f": the best keyword hit has {matched['bits']:.1f} of {matched['of']:.1f} bits of the"
            " question's words"
        )
    return line


def _parts(reasons: dict[str, Any]) -> str:
    named = {NAMES.get(name, name): value for name, value in reasons["parts"].items()}
    parts = " + ".join(f"{name} {value:.3f}" for name, value in named.items())
    return (
        f"= {parts}; #{reasons['rank_of_legs']} by the retrievers,"
        f" #{reasons['rank_of_content']} before facets and memory"
    )


def _why(legs: dict[str, Any]) -> str:
    ranks = ", ".join(f"{name} #{hit['rank']}" for name, hit in legs.items() if hit)
    return ranks and f"; {ranks}"
