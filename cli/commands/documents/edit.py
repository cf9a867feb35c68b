"""`callslip edit`: changes what is known of a document, without sending its file again."""

import time
from typing import Any

import click

from callslip.cli.shared.options import properties_option
from callslip.cli.shared.output import as_json, emit, reporting
from callslip.cli.shared.patience import Turn
from callslip.cli.shared.server import connect, url_option
from callslip.client import Client
from callslip.client.requests import plain
from callslip.errors import DocumentError, InvalidRequest, PreconditionFailed
from callslip.readers import check_readers
from callslip.vocabulary import VALIDITY

POLL_SECONDS = 0.3

FIELDS = ("title", "source_url", "language", *VALIDITY)
"""Options that each set a field of the document."""


@click.command(name="edit")
@click.argument("document_id")
@click.option("--title", help="Its title.")
@click.option("--source-url", metavar="ADDRESS", help="The web address of its source.")
@click.option("--language", metavar="CODE", help="Of every passage, e.g. ko, en.")
@click.option("--valid-from", metavar="DAY", help="The first day on which it is in force.")
@click.option("--valid-to", metavar="DAY", help="The first day on which it is not any more.")
@properties_option
@click.option(
    "--remove",
    multiple=True,
    metavar="NAME",
    help="Remove a property, or title, source-url, language, valid-from, valid-to; once for each.",
)
@click.option("--readers", metavar="NAMES", help="Who may read it, as in `callslip ingest`.")
@click.option(
    "--if-version",
    type=click.IntRange(1),
    help="Change nothing if another version is the newest one by now.",
)
@click.option("--no-wait", is_flag=True, help="Do not wait until searches see the change.")
@url_option
@as_json
@reporting
def edit_command(
    document_id: str,
    properties: dict[str, Any],
    remove: tuple[str, ...],
    readers: str | None,
    if_version: int | None,
    no_wait: bool,
    url: str | None,
    json_out: bool,
    **fields: str | None,
) -> None:
    """Change a document's title, source's address, language, validity, properties or readers.

    The change is a new version of the same file: nothing is read or embedded again, except
    passages that are embedded with a title that changes. It is in `callslip versions`, and
    `callslip rollback` undoes it. Another content under the same name drops it: ingest a changed
    file with its properties (-p; `callslip ingest register-source` has --title), or edit it again.

    \b
    Example:  callslip edit 1f0c… --title "Travel policy 2026" -p doc_type=policy
              callslip edit 1f0c… --source-url https://example.org/travel.html
              callslip edit 1f0c… --valid-to 2026-07-01 --remove draft
    """
    changes = changes_of(fields, properties, remove)
    if readers is not None:
        changes["readers"] = check_readers([name.strip() for name in readers.split(",")])
    if not changes:
        raise InvalidRequest("nothing says what to change", hint="callslip edit --help")
    with connect(url) as client:
        before = client.get_document(document_id)
        if if_version is not None and before.version != if_version:
            raise PreconditionFailed(
                f"version {before.version} is the newest, not {if_version}: nothing was changed",
                hint="Look at it with `callslip versions`, and name that version.",
            )
        etag = None if if_version is None else before.etag
        after = plain(client.edit_document(document_id, **changes, if_match=etag))
        changed = after["version"] != before.version
        if changed and not no_wait:
            turn = Turn(client, before.collection, before.tenant, shown=not json_out)
            after = _followed(client, document_id, after["version"], turn)
    if json_out:
        emit(after)
    elif not changed:
        click.echo("The readers are set." if readers else "Nothing changed: it says so already.")
    else:
        state = "is live" if after["state"] == "live" else "follows"
        click.echo(
            f"Version {after['version']} {state};"
            f" `callslip rollback {document_id} {before.version}` undoes it."
        )


def changes_of(
    fields: dict[str, str | None], properties: dict[str, Any], remove: tuple[str, ...]
) -> dict[str, Any]:
    """The arguments of `Client.edit_document`; what `remove` names is None."""
    changes: dict[str, Any] = {name: value for name, value in fields.items() if value is not None}
    merged = dict(properties)
    for name in remove:
        field = name.replace("-", "_")
        known, values = (field, changes) if field in FIELDS else (name, merged)
        if known in values:
            raise InvalidRequest(f"{name!r} is set and removed")
        values[known] = None
    if "source_url" in changes:
        changes["url"] = changes.pop("source_url")
    return changes | ({"properties": merged} if merged else {})


def _followed(client: Client, document_id: str, version: int, turn: Turn) -> dict[str, Any]:
    """Return the document once this version is live, or another one has replaced it."""
    while True:
        document: dict[str, Any] = plain(client.get_document(document_id))
        if document["version"] != version or document["state"] in ("live", "deleted"):
            return document
        if error := document["error"]:
            raise DocumentError(f"the change failed: {error['detail']}", hint=error["advice"])
        if document["state"] == "waiting":
            turn.tell(own=1)
        time.sleep(POLL_SECONDS)
