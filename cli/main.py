"""The `callslip` command."""

import os
import shutil
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, get_args
from urllib.parse import quote

import click
from pydantic import SecretStr

from callslip import __version__
from callslip.errors import NotFound
from cli.annotator_command import serve_annotator_command
from cli.asking import ask_command, conversation_command
from cli.attaching import attach_group, detach_command
from cli.auditing import audit
from cli.batches import batch_documents, get_batch, tell_batch
from cli.client import Client
from cli.collection_options import show_or_set
from cli.comparing import compare_command
from cli.conditions import conditions
from cli.desk import connect, running_url, url_option
from cli.doctor import examine
from cli.facets import facets_group
from cli.faq import ingest_faq_command
from cli.ingesting import Report, find_files, ingest, said
from cli.jobs import jobs_group, manifest_sources
from cli.looking_back import retry_command, rollback_command, show_failed, versions_command
from cli.mcp_command import mcp_command
from cli.memory import memory_group
from cli.options import allow_duplicate_option, collection_option, properties_option
from cli.output import as_json, emit, many, reporting
from cli.sources import source_group
from cli.steps import STEP_COMMANDS, IngestCommand
from cli.transfer import export_command, import_command, migrate_command
from cli.tune import tune_command
from cli.usage import usage_command
from cli.verifying import verify_group
from config import describe, load
from config.settings import StoreKind
from stores.fusion import Fusion
from stores.ledger import PRIORITIES
from stores.schemas import DEFAULT_COLLECTION
from workers.commands import ROLES

EXAMPLES = Path(__file__).resolve().parent.parent / "jobs" / "examples.jsonl"

SIGNS = {
    (True, False): ("ok  ", "green"),
    (True, True): ("warn", "yellow"),
    (False, False): ("FAIL", "red"),
}
"""Of a finding of `callslip doctor`, by whether it is all right and whether it warns."""

store_option = click.option(
    "--store",
    type=click.Choice(get_args(StoreKind)),
    help="Where a new collection is kept; default from the settings.",
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="callslip")
def main() -> None:
    """Callslip takes documents in and answers questions from them.

    \b
    Start:   callslip up
    Add:     callslip ingest handbook.pdf policies/
    Search:  callslip search "how long is parental leave?"
    Ask:     callslip ask "how long is parental leave?"
    """


@main.command()
@click.option("--port", type=click.IntRange(0, 65535), help="Port of the desk; 0 takes a free one.")
@click.option("--examples/--no-examples", default=True, help="Ingest the examples the first time.")
@as_json
@reporting
def up(port: int | None, examples: bool, json_out: bool) -> None:
    """Start everything on this machine and keep it running until Ctrl-C.

    With --json it prints one object once everything is ready; how it goes on is told on standard
    error.

    \b
    Example:  callslip up --port 9000
    """
    from workers.up import run as run_all  # imports every part; the other commands start faster

    if port is not None:
        os.environ["CALLSLIP_API__PORT"] = str(port)
    loaded = load()
    run_all(
        loaded,
        echo=partial(click.echo, err=json_out),
        after_ready=_Welcome(examples, json_out, loaded.settings.api.key),
    )


class _Welcome:
    """What a person, or a program, sees when everything is ready."""

    def __init__(self, examples: bool, json_out: bool, key: SecretStr | None) -> None:
        self._examples, self._json_out, self._key = examples, json_out, key

    def __call__(self, url: str, first_time: bool) -> None:
        report = None
        if self._examples and first_time and EXAMPLES.is_file():
            with Client(url, key=self._key) as client:
                sources = manifest_sources(EXAMPLES, DEFAULT_COLLECTION)
                report = ingest(client, DEFAULT_COLLECTION, sources, show_bar=not self._json_out)
        if self._json_out:
            emit({"url": url, "pid": os.getpid(), "examples": report and report.as_json()})
            return
        if report:
            _tell(report)
        click.secho(f"\nCallslip is ready: {url}", bold=True)
        click.echo(f'Search:  {_program()} search "how long is parental leave?"')
        click.echo(f'Ask:     {_program()} ask "how long is parental leave?"')
        click.echo("Stop:    Ctrl-C\n")


def _program() -> str:
    """What to type for this program in the same folder."""
    if shutil.which("callslip"):
        return "callslip"
    program = Path(sys.argv[0]).absolute()
    here = Path.cwd()
    return str(program.relative_to(here) if program.is_relative_to(here) else program)


@click.command(name="ingest")
@click.argument("paths", nargs=-1, required=True)
@collection_option
@store_option
@click.option("--tenant", default="", help="Whose files; makes a new collection one with tenants.")
@click.option(
    "--priority",
    type=click.IntRange(*PRIORITIES),
    default=0,
    help="Of the tenant's files that wait, a higher one goes first.",
)
@properties_option
@allow_duplicate_option
@url_option
@as_json
@reporting
def ingest_command(
    paths: tuple[str, ...],
    collection: str,
    store: str | None,
    tenant: str,
    priority: int,
    properties: dict[str, Any],
    allow_duplicate: bool,
    url: str | None,
    json_out: bool,
) -> None:
    """Send files, folders or globs and wait until they can be found.

    A file is known by its name (below the folder that was named): the same name again replaces it,
    the same content again does nothing, and without -p leaves its properties as they are. While too
    many documents wait already it sends no more, and goes on by itself. All files are one batch;
    stopped with Ctrl-C, what was sent goes on, and `callslip status --batch` follows it. Exit code
    1 when a file failed.

    \b
    Example:  callslip ingest handbook.pdf policies/ 'faq/*.md' -c handbook
              callslip ingest rates.pdf -p doc_type=policy -p valid_from=2026-07-01
    """
    fields = said(properties=properties, allow_duplicate=allow_duplicate)
    sources = [replace(source, fields=fields) for source in find_files(paths)]
    with connect(url) as client:
        report = ingest(
            client,
            collection,
            sources,
            store=store,
            tenant=tenant,
            priority=priority,
            show_bar=not json_out,
        )
    if json_out:
        emit(report.as_json())
    else:
        _tell(report)
    sys.exit(1 if report.failed else 0)


def _tell(report: Report) -> None:
    told = [f"{len(report.live)} live"]
    if report.unchanged:
        told.append(f"{len(report.unchanged)} unchanged")
    if report.failed:
        told.append(f"{len(report.failed)} failed")
    if report.gone:
        told.append(f"{len(report.gone)} replaced or deleted meanwhile")
    click.echo(f"{', '.join(told)} in {report.seconds:.1f} s")
    for failed in report.failed:
        click.secho(f"  {failed['name']}: {failed['detail']}", fg="red")
        click.echo(f"    {failed['advice']}")


@main.command()
@click.argument("document_id", required=False)
@collection_option
@click.option("--failed", is_flag=True, help="What failed for good, in every collection.")
@click.option("--batch", help="What was sent together, by its id.")
@url_option
@as_json
@reporting
def status(
    document_id: str | None,
    collection: str,
    failed: bool,
    batch: str | None,
    url: str | None,
    json_out: bool,
) -> None:
    """Show a collection's documents, every step of one, what failed, or how far a batch is.

    \b
    Example:  callslip status
              callslip status 1f0c…
              callslip status --failed
              callslip status --batch nightly
    """
    with connect(url) as client:
        if failed:
            show_failed(client, json_out)
            return
        if batch:
            found = get_batch(client, batch)
            found["failures"] = list(batch_documents(client, batch, state="failed"))
        elif document_id:
            found = client.get(f"/v1/documents/{quote(document_id, safe='')}")
        else:
            found = {
                "collections": client.get("/v1/collections")["collections"],
                "documents": _documents(client, collection),
            }
    if json_out:
        emit(found)
    elif batch:
        tell_batch(found)
    elif document_id:
        _tell_document(found)
    else:
        _tell_collection(found, collection)


def _documents(client: Client, collection: str) -> list[dict[str, Any]]:
    try:
        return list(client.documents(collection))
    except NotFound:
        return []


def _tell_collection(found: dict[str, Any], collection: str) -> None:
    attached = set()
    for record in found["collections"]:
        if at := record.get("attached"):
            attached.add(record["name"])
            embedder = "ours" if at["vectors"] == "ours" else "unknown"
            click.echo(f"{record['name']}: table {at['table']}, attached, embedder {embedder}")
            continue
        click.echo(
            f"{record['name']}: {many(record['documents'], 'document')}, {record['store']},"
            f" {record['embedder']}"
        )
    if not found["documents"] and collection not in attached:
        aim = "" if collection == DEFAULT_COLLECTION else f" -c {collection}"
        click.echo(f"Nothing in {collection!r} yet. Add files with `callslip ingest PATH{aim}`.")
    for document in found["documents"]:
        done = sum(s["state"] == "done" for s in document["steps"])
        click.echo(
            f"{document['document_id']}  {document['state']:8} {done}/{len(document['steps'])}"
            f"  {_whose(document)}{document['name']}"
        )
        if document["error"]:
            click.secho(f"  {document['error']['detail']}", fg="red")


def _whose(document: dict[str, Any]) -> str:
    return f"{document['tenant']}: " if document["tenant"] else ""


def _tell_document(document: dict[str, Any]) -> None:
    click.secho(
        f"{document['name']} (version {document['version']}): {document['state']}", bold=True
    )
    if document["parent"]:
        click.echo(f"  came within {document['parent']}")
    for step in document["steps"]:
        counts = ", ".join(f"{what} {n}" for what, n in step["counts"].items())
        seconds = "" if step["seconds"] is None else f"{step['seconds']:.2f} s"
        click.echo(
            f"  {step['step']:10} {step['state']:8} {seconds:>9}"
            f"  attempts {step['attempts']}  {counts}"
        )
    if document["error"]:
        click.secho(document["error"]["detail"], fg="red")
        click.echo(document["error"]["advice"])
    for what, held in (document["receipt"] or {}).items():
        click.echo(f"  {what}: {held['before']} before it was deleted, {held['after']} after")


@main.command()
@click.argument("query")
@collection_option
@click.option(
    "-n", "--top", type=click.IntRange(1), default=10, show_default=True, help="Most hits to show."
)
@click.option("--tenant", help="Whose documents, in a collection with tenants.")
@click.option(
    "--alpha", type=click.FloatRange(0, 1), help="Weight of meaning: 0 words only, 1 meaning only."
)
@click.option("--fusion", type=click.Choice(get_args(Fusion)), help="How the legs are merged.")
@click.option(
    "-w",
    "--where",
    multiple=True,
    metavar="CONDITION",
    help="What must hold, e.g. doc_type=policy, 'year>=2024' or 'lang in=en,ko'.",
)
@click.option(
    "--as-of",
    metavar="DAY",
    help="Only what is in force then: 2020-03-31, `now`, or `any` for all versions.",
)
@click.option("--explain", is_flag=True, help="Say what every hit's score is made of.")
@url_option
@as_json
@reporting
def search(
    query: str,
    collection: str,
    top: int,
    tenant: str | None,
    alpha: float | None,
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
    request = {
        "collection": collection,
        "query": query,
        "top": top,
        "tenant": tenant,
        "alpha": alpha,
        "fusion": fusion,
        "as_of": as_of,
        "explain": explain or None,
        "having_all": conditions(where) or None,
    }
    with connect(url) as client:
        found = client.search({k: v for k, v in request.items() if v is not None})
    if json_out:
        emit(found)
        return
    for left, reason in found["left_out"].items():
        click.secho(f"Without the {left} leg: {reason}", fg="yellow", err=True)
    if (as_of_used := found["as_of"])["at"]:
        words = f" (“{as_of_used['words']}”)" if as_of_used["words"] else ""
        click.secho(f"In force on {as_of_used['at'][:10]}{words}", dim=True, err=True)
    if found["hotset"]:
        click.secho("From the hotset: they helped with such a question.", dim=True, err=True)
    if not found["hits"]:
        click.echo("Nothing found.")
    for hit in found["hits"]:
        click.secho(f"{hit['rank']}. {hit['title']}", bold=True, nl=False)
        click.echo(f"  {hit['heading']}  ({hit['score']:.3f}{_why(hit['legs'])})")
        if reasons := hit["reasons"]:
            click.secho(f"   {_parts(reasons)}", dim=True)
        click.echo(f"   {' '.join(hit['text'].split())[:300]}\n")


def _parts(reasons: dict[str, Any]) -> str:
    parts = " + ".join(f"{name} {value:.3f}" for name, value in reasons["parts"].items())
    return (
        f"= {parts}; #{reasons['rank_of_legs']} by the legs,"
        f" #{reasons['rank_of_content']} before facets and memory"
    )


def _why(legs: dict[str, Any]) -> str:
    told = ", ".join(f"{name} #{leg['rank']}" for name, leg in legs.items() if leg)
    return told and f"; {told}"


@main.command(name="options")
@click.argument("collection")
@click.argument(
    "file", type=click.Path(exists=True, dir_okay=False, path_type=Path), required=False
)
@url_option
@as_json
@reporting
def options_command(collection: str, file: Path | None, url: str | None, json_out: bool) -> None:
    """Show what COLLECTION finds out about its documents, or set it from FILE (YAML or JSON).

    Entities, a dictionary of names and aliases, facets by rule, personal data: docs/enrichment.md.
    What is set replaces all that was set, and holds for what is ingested from then on. A collection
    that does not exist is made.

    \b
    Example:  callslip options laws
              callslip options laws laws.yaml
    """
    with connect(url) as client:
        show_or_set(client, collection, file, json_out=json_out)


@main.command()
@url_option
@as_json
@reporting
def doctor(url: str | None, json_out: bool) -> None:
    """Look at every part and say what is wrong and what to do. Exit code 1 when something is.

    What could be wrong, such as a desk for everyone without a key, is a warning.

    \b
    Example:  callslip doctor
    """
    loaded = load()
    findings = examine(loaded.settings, url or running_url(loaded.settings))
    if json_out:
        emit([finding.__dict__ for finding in findings])
    else:
        for finding in findings:
            sign, colour = SIGNS[finding.ok, finding.warns]
            click.echo(f"{click.style(sign, fg=colour)} {finding.part}: {finding.detail}")
            if not finding.ok or finding.warns:
                click.echo(f"     {finding.advice}")
    sys.exit(0 if all(finding.ok for finding in findings) else 1)


@main.command()
@as_json
@reporting
def config(json_out: bool) -> None:
    """Print every setting in force, secrets masked, and where each value came from.

    \b
    Example:  callslip config | grep search
    """
    found = describe(load())
    if json_out:
        emit([line._asdict() for line in found])
        return
    width = max(len(line.key) for line in found)
    shown = max(len(line.value) for line in found)
    for line in found:
        click.echo(f"{line.key:{width}}  {line.value:{shown}}  {line.origin}")


@main.command(name="eval")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@store_option
@click.option(
    "--queries",
    type=click.IntRange(min=1),
    help="Ask at most this many, spread over the set.  [default: all]",
)
@click.option("--keep", is_flag=True, help="Keep the scratch collection.")
@url_option
@as_json
@reporting
def eval_command(
    folder: Path,
    store: str | None,
    queries: int | None,
    keep: bool,
    url: str | None,
    json_out: bool,
) -> None:
    """Measure retrieval on a judged set in BEIR form.

    FOLDER holds corpus.jsonl, queries.jsonl and qrels.tsv. It is ingested through the real pipeline
    into a scratch collection; printed are nDCG@10, Recall@10, Recall@100 and MRR@10 per leg.

    \b
    Example:  callslip eval sets/en_scifact
    """
    from evals.run import run

    settings = load().settings
    run(
        folder,
        url or running_url(settings),
        key=settings.api.key,
        store=store,
        most_queries=queries,
        keep=keep,
        json_out=json_out,
    )


@main.command()
@click.argument("role", type=click.Choice(ROLES))
@reporting
def run(role: Any) -> None:
    """Run one process of Callslip in the foreground, for containers and service managers.

    \b
    Example:  callslip run ingest
    """
    from tasks.process import broker_url
    from workers.commands import argv

    settings = load().settings
    broker_url()  # says what is missing better than the process would
    command = argv(role, settings)
    os.execv(command[0], command)  # noqa: S606 - the command line is this project's own


main.add_command(IngestCommand(ingest_command, STEP_COMMANDS))
for command in (
    *(ask_command, conversation_command, compare_command, ingest_faq_command),
    *(audit, export_command, import_command, mcp_command, migrate_command, tune_command),
    *(retry_command, rollback_command, serve_annotator_command, usage_command, versions_command),
    *(jobs_group, memory_group, source_group, verify_group, facets_group),
    *(attach_group, detach_command),
):
    main.add_command(command)
