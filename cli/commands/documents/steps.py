"""The steps of a document one by one: `callslip ingest register-source | sectionize | … | upsert`.

The ledger owns the steps, and the workers run all of them in order as soon as a document is
registered. Each command therefore waits until its step of the newest version is done and prints the
step's output; if the step failed, it prints the error.
"""

import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import click
from pydantic import ValidationError

from callslip.cli.commands.documents.ingest import ingest_command
from callslip.cli.shared.manifest import Entry
from callslip.cli.shared.options import (
    allow_duplicate_option,
    collection_option,
    properties_option,
    source_url_option,
)
from callslip.cli.shared.output import as_json, emit, many, reporting
from callslip.cli.shared.server import connect, url_option
from callslip.cli.shared.upload import form_fields
from callslip.client import Client
from callslip.client.requests import plain
from callslip.errors import BY_SLUG, DocumentNotFound, InvalidRequest, PermanentError
from callslip.vocabulary import STEPS, Step

POLL_SECONDS = 0.3
QUIET_SECONDS = 1.0
"""After this many seconds a message names the step that the command waits for."""

document_option = click.option("--doc-id", "document_id", required=True, help="The document.")
_day = click.DateTime(["%Y-%m-%d"])


class IngestCommand(click.Group):
    """`callslip ingest PATH…`, unless the first word is a step: then the command of that step.

    A file with such a name is sent as `./chunk`.
    """

    def __init__(self, files: click.Command, steps: list[click.Command]) -> None:
        super().__init__(name=files.name, commands=steps, help=files.help)
        self.files = files
        names = ", ".join(step.name or "" for step in steps)
        files.epilog = f"One step of one document: callslip ingest STEP --help, with {names}."

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **more: Any,
    ) -> click.Context:
        """Make the context of the named step, or of the command for files."""
        if args and args[0] in self.commands:
            return super().make_context(info_name, args, parent, **more)
        return self.files.make_context(info_name, args, parent, **more)


@click.command(name="register-source")
@click.option(
    "--path",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    required=True,
    help="The file.",
)
@click.option("--doc-type", help="E.g. law, policy, faq.")
@click.option("--jurisdiction", help="E.g. KR, EU, US.")
@click.option("--lang", help="Of the document, e.g. ko or en; stored as document_lang.")
@click.option("--valid-from", type=_day, help="The first day on which it holds.")
@click.option("--valid-to", type=_day, help="The first day on which it no longer holds.")
@click.option("--name", default="", help="What it is known by; default the file's name.")
@click.option("--title", default="", help="Default: what the file says, or its name.")
@collection_option
@click.option("--tenant", default="", help="Whose document.")
@properties_option
@source_url_option
@allow_duplicate_option
@url_option
@as_json
@reporting
def register_source(
    path: Path,
    doc_type: str | None,
    jurisdiction: str | None,
    lang: str | None,
    valid_from: datetime | None,
    valid_to: datetime | None,
    name: str,
    title: str,
    collection: str,
    tenant: str,
    properties: dict[str, Any],
    allow_duplicate: bool,
    source_url: str | None,
    url: str | None,
    json_out: bool,
) -> None:
    """Register a file, and wait until its text is extracted.

    The original, its SHA-256 and its name are stored; the options become properties for filters.
    The workers continue with the other steps. The same file again changes nothing.

    \b
    Example:  callslip ingest register-source --path act.pdf --doc-type law --jurisdiction KR \\
                  --lang ko --valid-from 2026-01-01
    """
    try:
        entry = Entry(
            path=str(path.absolute()),
            collection=collection,
            name=name,
            tenant=tenant,
            title=title,
            doc_type=doc_type,
            jurisdiction=jurisdiction,
            lang=lang,
            valid_from=valid_from and valid_from.date(),
            valid_to=valid_to and valid_to.date(),
            properties=properties,
            url=source_url or "",
        )
    except ValidationError as error:
        raise InvalidRequest(
            "; ".join(str(e["msg"]).removeprefix("Value error, ") for e in error.errors())
        ) from None
    with connect(url) as client:
        client.create_collection(collection, tenants=True if tenant else None)
        submitted = client.upload(
            collection,
            path,
            name=entry.known_as(),
            tenant=entry.tenant,
            **form_fields(
                title=title,
                properties=entry.all_properties(),
                allow_duplicate=allow_duplicate,
            ),
            url=source_url,
        )
        document = wait_for(client, submitted.document_id, "extract")
    _tell(document, "extract", json_out, outcome=submitted.outcome)


def _step_command(step: Step, what: str) -> click.Command:
    @click.command(name=step, help=f"{what}\n\n\b\nExample:  callslip ingest {step} --doc-id 1f0c…")
    @document_option
    @url_option
    @as_json
    @reporting
    def command(document_id: str, url: str | None, json_out: bool) -> None:
        with connect(url) as client:
            _tell(wait_for(client, document_id, step), step, json_out)

    return command


@click.command(name="chunk")
@document_option
@click.option("--maxlen", type=click.IntRange(32), help="The longest chunk, in tokens.")
@click.option("--overlap", type=click.IntRange(0), help="The most tokens that two chunks share.")
@click.option("--apply", "apply_", is_flag=True, help="Make a version that is cut like this.")
@url_option
@as_json
@reporting
def chunk(
    document_id: str,
    maxlen: int | None,
    overlap: int | None,
    apply_: bool,
    url: str | None,
    json_out: bool,
) -> None:
    """Wait until the sections are cut into chunks, and print their number; or cut them otherwise.

    With --maxlen or --overlap the command prints how the live version would be cut, and changes
    nothing. With --apply too, it makes a version with these lengths, which later versions of the
    document keep. No chunk is longer than the embedder reads.

    \b
    Example:  callslip ingest chunk --doc-id 1f0c…
              callslip ingest chunk --doc-id 1f0c… --maxlen 900 --overlap 80
              callslip ingest chunk --doc-id 1f0c… --maxlen 900 --overlap 80 --apply
    """
    lengths = {"max_tokens": maxlen, "overlap_tokens": overlap}
    otherwise = maxlen is not None or overlap is not None
    if apply_ and not otherwise:
        raise click.UsageError("--apply goes with --maxlen or --overlap.")
    with connect(url) as client:
        if otherwise:
            wait_for(client, document_id, "upsert")
        if otherwise and not apply_:
            _show_cut(plain(client.preview_cut(document_id, **lengths)), maxlen, json_out)
            return
        more = {"outcome": client.cut(document_id, **lengths).outcome} if otherwise else {}
        _tell(wait_for(client, document_id, "chunk"), "chunk", json_out, **more)


def _show_cut(cut: dict[str, Any], maxlen: int | None, json_out: bool) -> None:
    if json_out:
        emit(cut)
        return
    now, then = cut["now"], cut["then"]
    click.secho(f"{cut['document_id']} (version {cut['version']})", bold=True)
    if maxlen is not None and cut["max_tokens"] < maxlen:
        click.echo(f"The embedder reads {cut['max_tokens']} tokens, so no chunk is longer.")
    click.echo(
        f"now {many(now['chunks'], 'chunk')}, the longest {now['longest']} tokens; then"
        f" {many(then['chunks'], 'chunk')}, the longest {then['longest']}; {cut['unchanged']} as"
        " they are"
    )
    for each in cut["chunks"]:
        click.echo(f"{each['tokens']:6}  {each['start']:,}–{each['end']:,}  {each['heading']}")
    click.echo("Nothing was changed; --apply makes a version that is cut like this.")


STEP_COMMANDS = [
    register_source,
    _step_command("sectionize", "Wait until the sections are detected, and print their number."),
    chunk,
    _step_command("enrich", "Wait until the chunks have their metadata, and print the counts."),
    _step_command("embed", "Wait until each chunk has its vector, and print their number."),
    _step_command("upsert", "Wait until all chunks are in the store and the document is live."),
]

ingest_group = IngestCommand(ingest_command, STEP_COMMANDS)


def wait_for(client: Client, document_id: str, step: Step) -> dict[str, Any]:
    """Wait until a step of the newest version is done; return the document.

    Raises the document's error if it failed at this step or an earlier one.
    """
    begun = time.monotonic()
    shown = ""
    try:
        while True:
            document: dict[str, Any] = plain(client.get_document(document_id))
            if _step(document, step)["state"] == "done":
                return document
            if document["state"] == "deleted":
                raise DocumentNotFound(f"document {document_id!r} was deleted")
            if document["state"] == "failed":
                error = document["error"]
                kind = BY_SLUG.get(error["type"], PermanentError)
                raise kind(error["detail"], hint=error["advice"])
            line = (
                f"{document['name']}: {document['state']}, {_done(document)} of {len(STEPS)} steps"
            )
            if line != shown and time.monotonic() > begun + QUIET_SECONDS:
                click.echo(line, err=True)
                shown = line
            time.sleep(POLL_SECONDS)
    except KeyboardInterrupt:
        click.echo("Stopped waiting; the workers go on.", err=True)
        sys.exit(130)


def _done(document: dict[str, Any]) -> int:
    return sum(step["state"] == "done" for step in document["steps"])


def _step(document: dict[str, Any], step: Step) -> dict[str, Any]:
    record: dict[str, Any] = next(one for one in document["steps"] if one["step"] == step)
    return record


def _tell(document: dict[str, Any], step: Step, json_out: bool, **more: Any) -> None:
    record = _step(document, step)
    if json_out:
        emit(
            {key: document[key] for key in ("document_id", "name", "version", "sha256")}
            | record
            | more
        )
        return
    counts = ", ".join(f"{count:,} {what}" for what, count in record["counts"].items())
    click.echo(f"{document['document_id']}  {document['name']} (version {document['version']})")
    click.echo(f"{step} done: {counts}" if counts else f"{step} done")
