"""Sends files and waits until they are live, with a progress bar."""

import io
import json
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote

import click

from callslip.cli.shared.batches import UNDERWAY, batch_documents, get_batch, pace
from callslip.cli.shared.manifest import Placed, read_manifest
from callslip.cli.shared.manifest_diff import digest_of
from callslip.cli.shared.output import many
from callslip.cli.shared.paths import Source
from callslip.cli.shared.patience import Turn
from callslip.client import Client
from callslip.client.models import Submitted
from callslip.errors import (
    CallslipError,
    EmptyFile,
    InvalidRequest,
    Overloaded,
    PermanentError,
    PermissionMissing,
)
from callslip.messages.values import is_unicode
from callslip.readers import check_readers
from callslip.vocabulary import MOST_COMPARED, StoreKind

LINE_SECONDS = 60.0
"""Seconds between two lines of progress where the output is not a terminal."""

FIRST_POLL_SECONDS, POLL_SECONDS = 0.1, 0.5
"""The pauses between two requests for progress: the first one, and the longest that they grow to. A
small file is live within a second."""

_COMPARED = ("title", "properties", "url")

PATIENCE = 10
"""The server counts a batch at each request; this pause leaves nine tenths of its time for
others."""


def form_fields(
    *, title: str = "", properties: Mapping[str, Any], allow_duplicate: bool = False
) -> dict[str, Any]:
    """The arguments of an upload that have a value; the server has defaults for the others."""
    fields = {"title": title, "properties": properties, "allow_duplicate": allow_duplicate}
    return {name: value for name, value in fields.items() if value}


def source_urls(address: str | None, names: Sequence[str]) -> list[dict[str, str]]:
    """The argument `url` of each upload; of an address that ends in `/`, each name is below it.

    Raises InvalidRequest if several files would have one address.
    """
    if not address:
        return [{} for _ in names]
    if address.endswith("/"):
        return [{"url": address + quote(name)} for name in names]
    if len(names) > 1:
        raise InvalidRequest(
            f"{address!r} cannot be the address of {len(names)} files",
            hint="End it with / if it is the address of their folder.",
        )
    return [{"url": address} for _ in names]


@dataclass
class Report:
    """The results of all files; `gone` ones were replaced or deleted before they were live."""

    live: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    failed: list[dict[str, str]] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    within: int = 0
    """How many of them came within a mail, an archive or another file that was sent."""
    seconds: float = 0.0
    batch_id: str = ""

    def as_json(self) -> dict[str, Any]:
        """The report of `--json`."""
        return {
            "live": self.live,
            "unchanged": self.unchanged,
            "failed": self.failed,
            "gone": self.gone,
            "within": self.within,
            "batch_id": self.batch_id,
            "seconds": round(self.seconds, 2),
        }


def manifest_sources(manifest: Path, collection: str) -> list[Source]:
    """The files of a manifest, with their fields."""
    return [source_of(placed) for placed in read_manifest(manifest, collection)]


def source_of(placed: Placed) -> Source:
    """Convert a line of a manifest to a file to send."""
    entry = placed.entry
    fields: dict[str, Any] = {"title": entry.title, "properties": entry.all_properties()}
    if entry.allow_duplicate:
        fields["allow_duplicate"] = True
    if entry.readers is not None:
        fields["readers"] = check_readers(entry.readers)
    if entry.url:
        fields["url"] = entry.url
    return Source(placed.path, placed.name, fields)


def ingest(
    client: Client,
    collection: str,
    sources: list[Source],
    *,
    store: StoreKind | None = None,
    vectors: Mapping[str, str] | None = None,
    tenant: str = "",
    priority: int = 0,
    show_bar: bool = True,
    again: bool = False,
) -> Report:
    """Send files and wait until each is live or failed; make the collection if it is missing.

    With `again`, files that the server has already are sent, too. If the server's backlog is full,
    wait for its `Retry-After` and send again. If it is interrupted or the server goes away, print
    how many files are not sent and how to follow the others.
    """
    started = time.monotonic()
    with suppress(PermissionMissing):  # a key that is limited to tenants makes no collection
        client.create_collection(
            collection, store=store, tenants=True if tenant else None, vectors=vectors or None
        )
    unchanged = set() if again else _unchanged(client, collection, tenant, sources)
    left = [source for source in sources if source.name not in unchanged]
    report = Report(batch_id=client.create_batch(expected=len(left)).batch_id)
    report.unchanged += [source.name for source in sources if source.name in unchanged]
    sent: dict[tuple[str, int], str] = {}
    turn = Turn(client, collection, tenant, shown=show_bar)
    with _Progress(client, report, len(sources), show_bar, turn) as progress:
        for number, source in enumerate(left):
            progress.unsent = len(left) - number
            while True:
                try:
                    submitted = _send(client, collection, tenant, priority, source, report)
                    break
                except Overloaded as error:
                    time.sleep(error.retry_after)
                    progress.look()
            if submitted is not None:
                progress.sent += 1
                sent[submitted.document_id, submitted.version] = source.name
            progress.unsent -= 1
            progress.look()
        client.create_batch(report.batch_id, expected=len(sent))  # refused files do not count
        while progress.look():
            progress.wait()
        documents = list(batch_documents(client, report.batch_id))
    for document in documents:  # includes documents within files
        key = document["document_id"], document["version"]
        report.within += key not in sent
        _note(document, sent.get(key, document["name"]), report)
    report.seconds = time.monotonic() - started
    return report


def _unchanged(client: Client, collection: str, tenant: str, sources: Sequence[Source]) -> set[str]:
    """The names of the files that the server has already, by one request for many files.

    A file with readers is not among them, because a submission sets its readers in any case. Nor
    are the files of a request that the server refuses: an older server has no such request.
    """
    compared = (fields for source in sources if (fields := _compared(source)))
    names: set[str] = set()
    while some := list(islice(compared, MOST_COMPARED)):
        with suppress(PermanentError):
            names.update(client.list_unchanged(collection, some, tenant=tenant).documents)
    return names


def _compared(source: Source) -> dict[str, Any] | None:
    """What the server compares of a file; None of a file that is sent in any case."""
    if "readers" in source.fields or (digest := digest_of(source.path)[0]) is None:
        return None
    fields = {"name": source.name, "filename": source.path.name, "sha256": digest}
    fields |= {name: source.fields[name] for name in _COMPARED if name in source.fields}
    return fields if is_unicode(json.dumps(fields, ensure_ascii=False)) else None


class _Progress:
    """The progress bar, updated from the server's report of the batch.

    Where the output is not a terminal, a line on standard error every LINE_SECONDS instead.
    """

    def __init__(self, client: Client, report: Report, files: int, show: bool, turn: Turn) -> None:
        self._client, self._report, self._turn = client, report, turn
        self.unsent = self.sent = 0
        self._bar: Any = click.progressbar(
            length=files,
            label="Ingesting",
            show_pos=True,
            show_percent=False,
            show_eta=False,  # the server's estimate is better
            item_show_func=lambda text: text or None,
            file=None if show else io.StringIO(),
        )
        self._next, self._pause = 0.0, FIRST_POLL_SECONDS
        self._next_line = time.monotonic() + LINE_SECONDS
        self._lines = show and not sys.stdout.isatty()

    def __enter__(self) -> "_Progress":
        self._bar.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.__exit__(kind, error, trace)
        if isinstance(error, KeyboardInterrupt | CallslipError):
            if self.unsent:
                unsent = many(self.unsent, "file")
                click.echo(f"{unsent} not sent: the same command sends them.", err=True)
            if self.sent:
                hint = f"What was sent goes on: callslip status --batch {self._report.batch_id}"
                click.echo(hint, err=True)

    def look(self) -> bool:
        """Update the bar if a poll is due; return False when no document is unfinished."""
        now = time.monotonic()
        if now < self._next:
            return True
        batch = get_batch(self._client, self._report.batch_id)
        took = time.monotonic() - now
        self._next = now + max(self._pause, PATIENCE * took)
        self._pause = min(POLL_SECONDS, 1.5 * self._pause)
        done = len(self._report.unchanged) + len(self._report.failed) + batch["submitted"]
        done -= sum(batch["states"].get(state, 0) for state in UNDERWAY)
        self._bar.length = max(self._bar.length, done)  # files can contain files
        self._bar.update(max(0, done - self._bar.pos), pace(batch))
        if self._lines and now >= self._next_line:
            self._next_line = now + LINE_SECONDS
            of = f"{self._bar.pos:,} of {many(self._bar.length, 'document')}"
            click.echo(", ".join(filter(None, (of, pace(batch)))), err=True)
        if batch["states"].keys() == {"waiting"}:  # none of them has begun
            self._turn.tell(own=batch["states"]["waiting"])
        return bool(batch["left"])

    def wait(self) -> None:
        """Wait until a poll is due."""
        time.sleep(max(0.0, self._next - time.monotonic()))


def _send(
    client: Client,
    collection: str,
    tenant: str,
    priority: int,
    source: Source,
    report: Report,
) -> Submitted | None:
    """Send one file; return None if it failed. Raises Overloaded if it has to be sent later."""
    try:
        if not is_unicode(source.name):  # the name of a file can be any bytes
            raise InvalidRequest(f"{source.name!r} is not a name in UTF-8", hint="Rename the file.")
        if source.path.stat().st_size == 0:
            raise EmptyFile(f"{source.name!r} has no bytes")
        with source.path.open("rb") as file:
            return client.upload(
                collection,
                file,
                filename=source.path.name,
                name=source.name,
                tenant=tenant,
                priority=priority,
                batch=report.batch_id,
                **source.fields,
            )
    except OSError as error:
        unreadable = PermanentError(
            f"{source.name!r} cannot be read: {error.strerror}", hint="Check its permissions."
        )
        report.failed.append(_failure(source.name, unreadable))
    except PermanentError as error:
        report.failed.append(_failure(source.name, error))
    return None


def _note(document: dict[str, Any], name: str, report: Report) -> None:
    if document["state"] == "live":
        (report.unchanged if document["unchanged"] else report.live).append(name)
    elif document["state"] == "failed":
        error = document["error"]
        failure = {key: error[key] for key in ("type", "detail", "advice")}
        report.failed.append({"name": name} | failure)
    else:
        report.gone.append(name)


def _failure(name: str, error: CallslipError) -> dict[str, str]:
    return {"name": name, "type": error.slug, "detail": error.detail, "advice": error.advice}


def show_report(report: Report) -> None:
    """Print the number of live files, and each failed file with its advice."""
    counts = [f"{len(report.live)} live"]
    if report.unchanged:
        counts.append(f"{len(report.unchanged)} unchanged")
    if report.failed:
        counts.append(f"{len(report.failed)} failed")
    if report.gone:
        counts.append(f"{len(report.gone)} replaced or deleted meanwhile")
    done = len(report.live + report.unchanged + report.gone) + len(report.failed)
    sent = f"{many(done - report.within, 'file')} and {report.within:,} within them: "
    click.echo(f"{sent if report.within else ''}{', '.join(counts)} in {report.seconds:.1f} s")
    for failed in report.failed:
        click.secho(f"  {failed['name']}: {failed['detail']}", fg="red")
        click.echo(f"    {failed['advice']}")
