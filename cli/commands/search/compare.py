"""`callslip compare`: sends one question to several collections and prints their hits."""

from typing import Any

import click

from callslip.cli.commands.documents.faq import DEFAULT_FAQ
from callslip.cli.shared.output import as_json, emit, named, reporting, shortened
from callslip.cli.shared.server import connect, url_option
from callslip.client import Client
from callslip.client.requests import path_of, without_none

SHOWN = 160
"""Characters of a hit's text that are printed."""


def _named(
    context: click.Context, parameter: click.Parameter, names: tuple[str, ...]
) -> tuple[str, ...]:
    for name in names:
        named(context, parameter, name)
    return names


@click.command(name="compare")
@click.argument("question")
@click.option(
    "-c",
    "--collection",
    "collections",
    multiple=True,
    callback=_named,
    help="A collection; repeat for several.  [default: those of --faq]",
)
@click.option(
    "--faq",
    default=DEFAULT_FAQ,
    show_default=True,
    callback=named,
    help="All collections of this FAQ, where none is named.",
)
@click.option("-n", "--top-k", type=click.IntRange(1), help="Most hits of each; default faq.top_k.")
@click.option(
    "--threshold",
    type=click.FloatRange(-1, 1),
    help="Least cosine similarity; default faq.threshold.",
)
@click.option("--merged", is_flag=True, help="Show one merged list, each entry once.")
@url_option
@as_json
@reporting
def compare_command(
    question: str,
    collections: tuple[str, ...],
    faq: str,
    top_k: int | None,
    threshold: float | None,
    merged: bool,
    url: str | None,
    json_out: bool,
) -> None:
    """Ask several collections the same question, by similarity of meaning alone.

    \b
    Example:  callslip compare "how do I change my password?"
              callslip compare "비밀번호를 바꾸려면?" -c faq__question -c faq__answer -n 3
              callslip compare "refund" --faq billing --merged --threshold 0.85
    """
    with connect(url) as client:
        fields = {
            "query": question,
            "collections": list(collections) or _of_faq(client, faq),
            "top_k": top_k,
            "threshold": threshold,
        }
        comparison = client.request_json("POST", "/v1/compare", json=without_none(**fields))
    if json_out:
        emit(comparison["merged"] if merged else comparison)
    elif merged:
        _tell(
            f"Merged from {', '.join(comparison['collections'])}",
            comparison["merged"],
            with_collections=True,
        )
    else:
        for name, hits in comparison["collections"].items():
            _tell(name, hits, with_collections=False)


def _of_faq(client: Client, name: str) -> list[str]:
    return list(client.request_json("GET", path_of("/v1/faq/{name}", name=name))["collections"])


def _tell(heading: str, hits: list[dict[str, Any]], *, with_collections: bool) -> None:
    click.secho(heading, bold=True)
    if not hits:
        click.echo("   nothing found")
    for rank, hit in enumerate(hits, 1):
        collection = f"  {hit['collection_name']}" if with_collections else ""
        is_row = {"question", "answer"} <= hit["metadata"].keys()
        text = hit["metadata"].get("question", hit["text"])
        parts = (hit["id"],) if is_row else dict.fromkeys((hit["title"], hit["heading"]))
        name = "  ".join(filter(None, parts))
        click.echo(f"{rank:2}. {hit['similarity']:.4f}  {name}{collection}")
        click.secho(f"    {shortened(str(text), SHOWN)}")
        if answer := hit["metadata"].get("answer"):
            click.secho(f"    {shortened(str(answer), SHOWN)}", dim=True)
    click.echo()
