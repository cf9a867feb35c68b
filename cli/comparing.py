"""`callslip compare`: a question to several collections, beside each other."""

from typing import Any
from urllib.parse import quote

import click

from cli.client import Client
from cli.desk import connect, url_option
from cli.faq import DEFAULT_FAQ
from cli.output import as_json, emit, named, reporting

SHOWN = 160
"""Characters of a text."""


def _named(
    context: click.Context, parameter: click.Parameter, given: tuple[str, ...]
) -> tuple[str, ...]:
    for name in given:
        named(context, parameter, name)
    return given


@click.command(name="compare")
@click.argument("question")
@click.option(
    "-c",
    "--collection",
    "collections",
    multiple=True,
    callback=_named,
    help="One of them; once for each.  [default: those of --faq]",
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
@click.option("--merged", is_flag=True, help="One list of all, each entry once.")
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
        asked = {
            "query": question,
            "collections": list(collections) or _of_faq(client, faq),
            "top_k": top_k,
            "threshold": threshold,
        }
        found = client.post("/v1/compare", {k: v for k, v in asked.items() if v is not None})
    if json_out:
        emit(found["merged"] if merged else found)
    elif merged:
        _tell(f"Merged from {', '.join(found['collections'])}", found["merged"], places=True)
    else:
        for name, hits in found["collections"].items():
            _tell(name, hits, places=False)


def _of_faq(client: Client, name: str) -> list[str]:
    return list(client.get(f"/v1/faq/{quote(name, safe='')}")["collections"])


def _tell(heading: str, hits: list[dict[str, Any]], *, places: bool) -> None:
    click.secho(heading, bold=True)
    if not hits:
        click.echo("   nothing found")
    for rank, hit in enumerate(hits, 1):
        place = f"  {hit['collection_name']}" if places else ""
        text = hit["metadata"].get("question", hit["text"])
        click.echo(f"{rank:2}. {hit['similarity']:.4f}  {hit['id']}{place}")
        click.secho(f"    {_short(text)}")
        if answer := hit["metadata"].get("answer"):
            click.secho(f"    {_short(answer)}", dim=True)
    click.echo()


def _short(text: str) -> str:
    line = " ".join(str(text).split())
    return line if len(line) <= SHOWN else f"{line[: SHOWN - 1]}…"
