"""Sending files and watching them go live, with a progress bar."""

import glob
import io
import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from types import TracebackType
from typing import Any

import click

from callslip.errors import CallslipError, EmptyFile, Overloaded, PermanentError
from cli.batches import UNDERWAY, batch_documents, get_batch, pace
from cli.client import Client

POLL_SECONDS = 0.5

PATIENCE = 10
"""The desk counts a batch each time it is asked: nine tenths of its time are left to others."""


@dataclass(frozen=True)
class Source:
    """A file to send, and the name it is known by: its path below what was named."""

    path: Path
    name: str
    fields: Mapping[str, str] = field(default_factory=dict)
    """Further fields of the form: `title`, `properties` (JSON), `allow_duplicate`."""


def said(
    *, title: str = "", properties: Mapping[str, Any], allow_duplicate: bool = False
) -> dict[str, str]:
    """What was given, as fields of the form; what was not stays as the desk knows it."""
    fields = {"title": title} if title else {}
    if properties:
        fields["properties"] = json.dumps(properties)
    if allow_duplicate:
        fields["allow_duplicate"] = "true"
    return fields


@dataclass
class Report:
    """What became of each file; `gone` ones were replaced or deleted before they were live."""

    live: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    failed: list[dict[str, str]] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    seconds: float = 0.0
    batch_id: str = ""

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "live": self.live,
            "unchanged": self.unchanged,
            "failed": self.failed,
            "gone": self.gone,
            "batch_id": self.batch_id,
            "seconds": round(self.seconds, 2),
        }


def find_files(paths: Iterable[str]) -> list[Source]:
    """The files that paths, folders and globs name, each once, hidden ones left out."""
    found: dict[Path, Source] = {}
    for given in paths:
        path = Path(given).expanduser()
        if path.is_dir():
            inside = sorted(p for p in path.rglob("*") if p.is_file() and not _hidden(p, path))
            sources = [Source(p, p.relative_to(path).as_posix()) for p in inside]
        elif path.is_file():
            sources = [Source(path, path.name)]
        else:
            matches = sorted(Path(p) for p in glob.glob(str(path), recursive=True))  # noqa: PTH207
            fixed = _fixed_part(path)
            sources = [Source(p, p.relative_to(fixed).as_posix()) for p in matches if p.is_file()]
        if not sources:
            raise PermanentError(
                f"{given!r} names no file",
                hint="Name a file, a folder or a glob such as 'docs/*.pdf'.",
            )
        for source in sources:
            found.setdefault(source.path.resolve(), source)
    _refuse_one_name(found.values())
    return list(found.values())


def _fixed_part(pattern: Path) -> Path:
    """The folder of a glob above its first wildcard."""
    return Path(*takewhile(lambda part: not glob.has_magic(part), pattern.parts))


def _refuse_one_name(sources: Iterable[Source]) -> None:
    by_name: dict[str, Source] = {}
    for source in sources:
        other = by_name.setdefault(source.name, source)
        if other is not source:
            raise PermanentError(
                f"{other.path} and {source.path} would both be known as {source.name!r}",
                hint="Name a folder above both, and they are known by their paths below it.",
            )


def ingest(
    client: Client,
    collection: str,
    sources: list[Source],
    *,
    store: str | None = None,
    tenant: str = "",
    priority: int = 0,
    show_bar: bool = True,
) -> Report:
    """Send files and wait until each is live or failed; the collection is made where it is not.

    While the desk takes no more because too many wait, it is asked again when it says so.
    """
    started = time.monotonic()
    client.create_collection(collection, store=store, tenants=True if tenant else None)
    report = Report(batch_id=client.make_batch(len(sources)))
    sent: dict[tuple[str, int], str] = {}
    with _Progress(client, report, len(sources), show_bar) as progress:
        for source in sources:
            while True:
                try:
                    submitted = _send(client, collection, tenant, priority, source, report)
                    break
                except Overloaded as error:
                    time.sleep(error.retry_after)
                    progress.look()
            if submitted is not None:
                sent[submitted["document_id"], submitted["version"]] = source.name
            progress.look()
        client.make_batch(len(sent), report.batch_id)  # what was refused is not waited for
        while progress.look():
            time.sleep(POLL_SECONDS)
    for document in batch_documents(client, report.batch_id):  # what came within others too
        key = document["document_id"], document["version"]
        _note(document, sent.get(key, document["name"]), report)
    report.seconds = time.monotonic() - started
    return report


class _Progress:
    """The bar, moved by what the desk says of the batch."""

    def __init__(self, client: Client, report: Report, files: int, show: bool) -> None:
        self._client, self._report = client, report
        self._bar: Any = click.progressbar(
            length=files,
            label="Ingesting",
            show_pos=True,
            show_percent=False,
            show_eta=False,  # the desk knows better
            item_show_func=lambda told: told or None,
            file=None if show else io.StringIO(),
        )
        self._next = 0.0

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
        if kind is KeyboardInterrupt:
            told = f"What was sent goes on: callslip status --batch {self._report.batch_id}"
            click.echo(told, err=True)

    def look(self) -> bool:
        """Show how far it is, if it is time to ask; false once nothing is left."""
        asked = time.monotonic()
        if asked < self._next:
            return True
        batch = get_batch(self._client, self._report.batch_id)
        took = time.monotonic() - asked
        self._next = asked + max(POLL_SECONDS, PATIENCE * took)
        done = len(self._report.failed) + batch["submitted"]
        done -= sum(batch["states"].get(state, 0) for state in UNDERWAY)
        self._bar.update(max(0, done - self._bar.pos), pace(batch))
        return bool(batch["left"])


def _send(
    client: Client,
    collection: str,
    tenant: str,
    priority: int,
    source: Source,
    report: Report,
) -> dict[str, Any] | None:
    """What the desk answers; None where the file failed. Overloaded where it is to come later."""
    try:
        if source.path.stat().st_size == 0:
            raise EmptyFile(f"{source.name!r} has no bytes")
        return client.upload(
            collection,
            source.path,
            source.name,
            tenant,
            priority=str(priority),
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
        told = {key: error[key] for key in ("type", "detail", "advice")}
        report.failed.append({"name": name} | told)
    else:
        report.gone.append(name)


def _failure(name: str, error: CallslipError) -> dict[str, str]:
    return {"name": name, "type": error.slug, "detail": error.detail, "advice": error.advice}


def _hidden(path: Path, root: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(root).parts)
