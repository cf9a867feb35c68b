"""`callslip facets`: the facets of a collection and the vectors of their values."""

import sys
import time
from typing import Any

import click

from callslip.cli.shared.conditions import conditions
from callslip.cli.shared.options import collection_option
from callslip.cli.shared.output import as_json, emit, many, reporting
from callslip.cli.shared.patience import Patience
from callslip.cli.shared.server import connect, url_option
from callslip.client import Client
from callslip.client.models import FacetsAsked
from callslip.client.requests import plain

POLL_SECONDS = 0.5
SHOWN = 8
_OUTCOMES = ("made", "unchanged", "gone", "left_out")

tenant_option = click.option("--tenant", help="Tenant, in a collection with tenants.")


@click.group(name="facets")
def facets_group() -> None:
    """Facets of a collection, and the vectors of their values.

    A question about a value of a facet, such as a kind of document, raises the scores of passages
    with this value a little. The settings (facets.names) and the collection's option `facets` name
    the facets.

    \b
    Example:  callslip facets list -c laws
              callslip facets rebuild-vectors --facet all -c laws
    """


@facets_group.command(name="rebuild-vectors")
@click.option("--facet", required=True, metavar="NAME|all", help="Which facet.")
@collection_option
@click.option("--tenant", help="Tenant, in a collection with tenants; default: everybody's.")
@url_option
@as_json
@reporting
def rebuild_vectors(
    facet: str, collection: str, tenant: str | None, url: str | None, json_out: bool
) -> None:
    """Recompute the vectors of facet values whose passages changed.

    A repeated command embeds nothing. After Ctrl-C the worker continues. Exit code 1 if a facet
    could not be rebuilt.

    \b
    Example:  callslip facets rebuild-vectors --facet doc_type
              callslip facets rebuild-vectors --facet all -c laws
    """
    done: list[dict[str, Any]] = []
    with connect(url) as client:
        for whose in [tenant] if tenant else _tenants(client, collection):
            rebuild = client.rebuild_facets(collection, facet=facet, tenant=whose)
            for facet_done in _rebuilt(client, collection, whose, rebuild, quiet=json_out):
                done.append({"tenant": whose, **facet_done})
    if json_out:
        emit({"collection": collection, "facets": done})
    else:
        for facet_done in done:
            of = f" of {facet_done['tenant']}" if facet_done["tenant"] else ""
            click.secho(f"{facet_done['name']}{of}  ", bold=True, nl=False)
            click.echo(_counted(facet_done["counts"]))
            _tell_error(facet_done)
    sys.exit(1 if any(facet_done["error"] for facet_done in done) else 0)


@facets_group.command(name="list")
@collection_option
@tenant_option
@url_option
@as_json
@reporting
def list_command(collection: str, tenant: str | None, url: str | None, json_out: bool) -> None:
    """Show the facets of a collection, their most frequent values, and the last rebuild.

    \b
    Example:  callslip facets list -c laws
    """
    with connect(url) as client:
        listed = plain(
            client.list_facets(collection, tenant=tenant, limit=500 if json_out else SHOWN)
        )
    if json_out:
        emit(listed)
        return
    for facet in listed["facets"]:
        at = facet["ended_at"]
        when = "being rebuilt" if at is None else time.strftime("%F %H:%M", time.localtime(at))
        click.secho(f"{facet['name']}  ", bold=True, nl=False)
        click.echo(f"{many(facet['counts'].get('values', 0), 'value')}, {when}")
        shown = (f"{v['value']} ({v['chunks']:,})" for v in facet["values"])
        click.echo(f"  {', '.join(shown) or '-'}")
        if facet["calibration"] is None and at is not None and not facet["error"]:
            click.echo("  The values cannot be distinguished: the facet favours nothing.")
        _tell_error(facet)
    if not listed["facets"]:
        click.echo("Nothing yet; make them with:  callslip facets rebuild-vectors --facet all")


@facets_group.command(name="count")
@click.argument("prop", metavar="PROPERTY")
@collection_option
@tenant_option
@click.option(
    "-w",
    "--where",
    multiple=True,
    metavar="CONDITION",
    help="What must hold, e.g. doc_type=policy, 'year>=2024' or 'lang in=en,ko'.",
)
@click.option(
    "-n", "--top", type=click.IntRange(1, 200), default=20, show_default=True, help="Most values."
)
@url_option
@as_json
@reporting
def count_command(
    prop: str,
    collection: str,
    tenant: str | None,
    where: tuple[str, ...],
    top: int,
    url: str | None,
    json_out: bool,
) -> None:
    """Count passages and documents by the values of PROPERTY.

    \b
    Example:  callslip facets count doc_type -c laws
              callslip facets count section -c laws -w lang=ko
    """
    with connect(url) as client:
        counted = plain(
            client.count_by(
                collection, prop, tenant=tenant, having_all=conditions(where) or None, limit=top
            )
        )
    if json_out:
        emit(counted)
        return
    click.secho(f"{'documents':>10} {'passages':>10}  {prop}", bold=True)
    for value in counted["values"]:
        click.echo(f"{value['documents']:10,} {value['chunks']:10,}  {value['value']}")
    if (left := counted["distinct"] - len(counted["values"])) > 0:
        click.echo(f"{'':22} and {many(left, 'more value')}")
    click.secho(f"{counted['documents']:10,} {counted['chunks']:10,}  in all", bold=True)


@facets_group.command(name="discover")
@collection_option
@tenant_option
@url_option
@as_json
@reporting
def discover_command(collection: str, tenant: str | None, url: str | None, json_out: bool) -> None:
    """Propose facets: properties that divide a collection well, and clusters of its passages.

    Nothing is changed. A property becomes a facet by its name in facets.names, or in the option
    `facets` of the collection; a cluster may suggest a rule (docs/enrichment.md).

    \b
    Example:  callslip facets discover -c laws
    """
    with connect(url) as client:
        proposals = plain(client.propose_facets(collection, tenant=tenant))
    if json_out:
        emit(proposals)
        return
    click.secho("Properties", bold=True)
    for p in proposals["properties"]:
        click.echo(
            f"  {p['name']}  {many(p['distinct'], 'value')}, on {p['coverage']:.0%} of passages,"
            f" evenness {p['evenness']:.2f}, separation {p['separation']:.2f}"
        )
        click.echo(f"    {', '.join(f'{value} ({n:,})' for value, n in p['values'].items())}")
    click.secho(f"Clusters of {many(proposals['sampled'], 'passage')}", bold=True)
    for c in proposals["clusters"]:
        click.echo(f"  {c['share']:4.0%}  {', '.join(c['terms'])}")
    if not proposals["properties"] and not proposals["clusters"]:
        click.echo("  Nothing divides it; a few hundred passages are needed for clusters.")


def _tenants(client: Client, collection: str) -> list[str | None]:
    """The tenants of the collection; None if it has no tenants."""
    records = client.list_collections().collections
    if not any(record.name == collection and record.tenants for record in records):
        return [None]
    return list(client.list_tenants(collection).tenants)


def _rebuilt(
    client: Client, collection: str, tenant: str | None, rebuild: FacetsAsked, *, quiet: bool
) -> list[dict[str, Any]]:
    """The facets after a worker has rebuilt all requested ones, or has failed.

    Raises ServerDown if no worker begins.
    """
    patience = Patience(
        "maintenance",
        "All may be busy, then it follows: `callslip facets list` shows it. Start Callslip with"
        " `callslip up` if it does not run.",
    )
    show_line = not quiet and sys.stderr.isatty()
    while True:
        facets = plain(client.list_facets(collection, tenant=tenant, limit=0))["facets"]
        mine = [facet for facet in facets if facet["run"] == rebuild.run]
        failed = any(facet["error"] for facet in mine)
        ended = [facet for facet in mine if facet["ended_at"] is not None]
        if failed or len(ended) == len(rebuild.facets):
            if show_line:
                click.echo("\r\x1b[K", nl=False, err=True)
            return mine
        if mine and show_line:
            at_work = (
                mine[-1] if len(ended) == len(mine) else next(f for f in mine if f not in ended)
            )
            line = f"{at_work['name']}: {_counted(at_work['counts'])}"
            click.echo(f"\r\x1b[K{line}", nl=False, err=True)
        elif not mine:
            patience.check()
        time.sleep(POLL_SECONDS)


def _counted(counts: dict[str, int]) -> str:
    counted = [
        f"{counts[what]:,} {what.replace('_', ' ')}" for what in _OUTCOMES if counts.get(what)
    ]
    return ", ".join(counted) or "no values"


def _tell_error(facet: dict[str, Any]) -> None:
    if facet["error"]:
        click.secho(f"  {facet['error']['detail']}", fg="red")
        click.echo(f"  {facet['error']['advice']}")
