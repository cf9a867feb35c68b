"""Sending files and watching them go live, with a progress bar."""

import glob
import io
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any

import click

from callslip.errors import CallslipError, EmptyFile, Overloaded, PermanentError
from cli.client import Client

POLL_SECONDS = 0.5
FINISHED = ("live", "failed", "deleted")


@dataclass(frozen=True)
class Source:
    """A file to send, and the name it is known by: its path below what was named."""

    path: Path
    name: str
    fields: Mapping[str, str] = field(default_factory=dict)
    """Further fields of the form: `title`, `properties` (JSON), `allow_duplicate`."""


@dataclass
class Report:
    """What became of each file."""

    live: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    failed: list[dict[str, str]] = field(default_factory=list)
    seconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "live": self.live,
            "unchanged": self.unchanged,
            "failed": self.failed,
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
    show_bar: bool = True,
) -> Report:
    """Send files and wait until each is live or failed; the collection is made where it is not."""
    report, started = Report(), time.monotonic()
    client.create_collection(collection, store=store, tenants=True if tenant else None)
    waiting: dict[str, str] = {}
    shown_on = None if show_bar else io.StringIO()
    bar = click.progressbar(length=len(sources), label="Ingesting", show_pos=True, file=shown_on)
    with bar:
        for source in sources:
            submitted = _send(client, collection, tenant, source, report)
            if submitted is None:
                bar.update(1)
            elif submitted["outcome"] == "unchanged" and _is_live(client, submitted):
                report.unchanged.append(source.name)
                bar.update(1)
            else:
                waiting[submitted["document_id"]] = source.name
            if len(waiting) >= 64:
                _collect(client, waiting, report, bar)
        while waiting:
            _collect(client, waiting, report, bar)
            if waiting:
                time.sleep(POLL_SECONDS)
    report.seconds = time.monotonic() - started
    return report


def _is_live(client: Client, submitted: dict[str, Any]) -> bool:
    document = client.get(f"/v1/documents/{submitted['document_id']}")
    return bool(document["state"] == "live")


def _send(
    client: Client, collection: str, tenant: str, source: Source, report: Report
) -> dict[str, Any] | None:
    while True:
        try:
            if source.path.stat().st_size == 0:
                raise EmptyFile(f"{source.name!r} has no bytes")
            return client.upload(collection, source.path, source.name, tenant, **source.fields)
        except Overloaded:
            time.sleep(2)
        except OSError as error:
            unreadable = PermanentError(
                f"{source.name!r} cannot be read: {error.strerror}", hint="Check its permissions."
            )
            report.failed.append(_failure(source.name, unreadable))
            return None
        except PermanentError as error:
            report.failed.append(_failure(source.name, error))
            return None


def _collect(client: Client, waiting: dict[str, str], report: Report, bar: Any) -> None:
    for document_id, name in list(waiting.items()):
        document = client.get(f"/v1/documents/{document_id}")
        if document["state"] not in FINISHED:
            continue
        del waiting[document_id]
        bar.update(1)
        if document["state"] == "live":
            report.live.append(name)
        elif document["error"]:
            error = document["error"]
            report.failed.append(
                {
                    "name": name,
                    "type": error["type"],
                    "detail": error["detail"],
                    "advice": error["advice"],
                }
            )


def _failure(name: str, error: CallslipError) -> dict[str, str]:
    return {"name": name, "type": error.slug, "detail": error.detail, "advice": error.advice}


def _hidden(path: Path, root: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(root).parts)
