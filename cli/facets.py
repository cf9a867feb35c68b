"""`callslip facets`: what the soft prior knows of a collection's facets."""

import sys
import time
from typing import Any
from urllib.parse import quote

import click

from cli.client import Client
from cli.desk import connect, url_option
from cli.options import collection_option
from cli.output import as_json, emit, many, reporting

POLL_SECONDS = 0.5
PATIENCE_SECONDS = 15.0
"""After this it is said that no worker has taken the rebuild up."""

SHOWN = 8
_TOLD = ("made", "unchanged", "gone", "left_out")

tenant_option = click.option("--tenant", help="Whose, in a collection with tenants.")


@click.group(name="facets")
def facets_group() -> None:
    """Facets of a collection, and the vectors of their values.

    A question that is about a value of a facet, such as a kind of document, lifts the passages that
    carry it a little. The settings name the facets (facets.names).

    \b
    Example:  callslip facets list -c laws
              callslip facets rebuild-vectors --facet all -c laws
    """


@facets_group.command(name="rebuild-vectors")
@click.option("--facet", required=True, metavar="NAME|all", help="Which facet of the settings.")
@collection_option
@click.option("--tenant", help="Whose, in a collection with tenants; default: everybody's.")
@url_option
@as_json
@reporting
def rebuild_vectors(
    facet: str, collection: str, tenant: str | None, url: str | None, json_out: bool
) -> None:
    """Make the vectors of facet values anew where their passages changed.

    The same command again embeds nothing. Stopped with Ctrl-C the worker goes on. Exit code 1 when
    a facet could not be rebuilt.

    \b
    Example:  callslip facets rebuild-vectors --facet doc_type
              callslip facets rebuild-vectors --facet all -c laws
    """
    done: list[dict[str, Any]] = []
    with connect(url) as client:
        path = _path(collection)
        for whose in [tenant] if tenant else _tenants(client, collection):
            asked = client.post(f"{path}/rebuild", {"facet": facet, "tenant": whose})
            for found in _rebuilt(client, path, whose, asked, quiet=json_out):
                done.append({"tenant": whose, **found})
    if json_out:
        emit({"collection": collection, "facets": done})
    else:
        for found in done:
            of = f" of {found['tenant']}" if found["tenant"] else ""
            click.secho(f"{found['name']}{of}  ", bold=True, nl=False)
            click.echo(_counted(found["counts"]))
            _tell_error(found)
    sys.exit(1 if any(found["error"] for found in done) else 0)


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
        found = client.get(_path(collection), tenant=tenant, limit=500 if json_out else SHOWN)
    if json_out:
        emit(found)
        return
    for facet in found["facets"]:
        at = facet["ended_at"]
        when = "being rebuilt" if at is None else time.strftime("%F %H:%M", time.localtime(at))
        click.secho(f"{facet['name']}  ", bold=True, nl=False)
        click.echo(f"{many(facet['counts'].get('values', 0), 'value')}, {when}")
        shown = (f"{v['value']} ({v['chunks']:,})" for v in facet["values"])
        click.echo(f"  {', '.join(shown) or '-'}")
        if facet["calibration"] is None and at is not None and not facet["error"]:
            click.echo("  No value can be told from another: it favours nothing.")
        _tell_error(facet)
    if not found["facets"]:
        click.echo("Nothing yet; make them with:  callslip facets rebuild-vectors --facet all")


@facets_group.command(name="discover")
@collection_option
@tenant_option
@url_option
@as_json
@reporting
def discover_command(collection: str, tenant: str | None, url: str | None, json_out: bool) -> None:
    """Propose facets: properties that divide a collection well, and clusters of its passages.

    Nothing is changed. A property becomes a facet by its name in facets.names; a cluster may
    suggest a rule (docs/enrichment.md).

    \b
    Example:  callslip facets discover -c laws
    """
    with connect(url) as client:
        found = client.get(f"{_path(collection)}/proposals", tenant=tenant)
    if json_out:
        emit(found)
        return
    click.secho("Properties", bold=True)
    for p in found["properties"]:
        click.echo(
            f"  {p['name']}  {many(p['distinct'], 'value')}, on {p['coverage']:.0%} of passages,"
            f" evenness {p['evenness']:.2f}, separation {p['separation']:.2f}"
        )
        click.echo(f"    {', '.join(f'{value} ({n:,})' for value, n in p['values'].items())}")
    click.secho(f"Clusters of {many(found['sampled'], 'passage')}", bold=True)
    for c in found["clusters"]:
        click.echo(f"  {c['share']:4.0%}  {', '.join(c['terms'])}")
    if not found["properties"] and not found["clusters"]:
        click.echo("  Nothing divides it; a few hundred passages are needed for clusters.")


def _path(collection: str) -> str:
    return f"/v1/collections/{quote(collection, safe='')}/facets"


def _tenants(client: Client, collection: str) -> list[str | None]:
    """Every tenant; one without a name where the collection has none."""
    records = client.get("/v1/collections")["collections"]
    if not any(r["name"] == collection and r["tenants"] for r in records):
        return [None]
    path = f"/v1/collections/{quote(collection, safe='')}/tenants"
    return list(client.get(path)["tenants"])


def _rebuilt(
    client: Client, path: str, tenant: str | None, asked: dict[str, Any], *, quiet: bool
) -> list[dict[str, Any]]:
    """The facets once a worker has rebuilt all that was asked for, or failed."""
    begun, told = time.monotonic(), False
    show_line = not quiet and sys.stderr.isatty()
    while True:
        found = client.get(path, tenant=tenant, limit=0)["facets"]
        mine = [facet for facet in found if facet["run"] == asked["run"]]
        failed = any(facet["error"] for facet in mine)
        ended = [facet for facet in mine if facet["ended_at"] is not None]
        if failed or len(ended) == len(asked["facets"]):
            if show_line:
                click.echo("\r\x1b[K", nl=False, err=True)
            return mine
        if mine and show_line:
            at_work = (
                mine[-1] if len(ended) == len(mine) else next(f for f in mine if f not in ended)
            )
            line = f"{at_work['name']}: {_counted(at_work['counts'])}"
            click.echo(f"\r\x1b[K{line}", nl=False, err=True)
        elif not mine and not told and time.monotonic() > begun + PATIENCE_SECONDS:
            told = True
            click.echo("No maintenance worker has taken it up yet; is Callslip running?", err=True)
        time.sleep(POLL_SECONDS)


def _counted(counts: dict[str, int]) -> str:
    told = [f"{counts[what]:,} {what.replace('_', ' ')}" for what in _TOLD if counts.get(what)]
    return ", ".join(told) or "no values"


def _tell_error(facet: dict[str, Any]) -> None:
    if facet["error"]:
        click.secho(f"  {facet['error']['detail']}", fg="red")
        click.echo(f"  {facet['error']['advice']}")
