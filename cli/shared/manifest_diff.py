"""Compares each file of a manifest with the server's document of the same name."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from callslip.cli.shared.manifest import Placed
from callslip.client import Client
from callslip.client.requests import plain
from callslip.errors import NotFound
from callslip.readers import EVERYONE, check_readers
from callslip.stores.naming import clean_filename, clean_line, clean_url

_BYTES_PER_READ = 1 << 16
"""The buffer of `hashlib.file_digest` is larger, and takes as long as a small file."""

State = Literal["new", "changed", "again", "underway", "unchanged", "duplicate", "missing"]
"""again: the document failed and is sent again; underway: sent before, but not live yet; duplicate:
another name has the same content; missing: the file does not exist."""

TO_SEND: tuple[State, ...] = ("new", "changed", "again", "underway")
STATES: tuple[State, ...] = (*TO_SEND, "unchanged", "duplicate", "missing")


@dataclass(frozen=True)
class Planned:
    """A line and the effect of sending it; `reason` if it cannot be sent."""

    placed: Placed
    state: State
    reason: str = ""


def plan(
    client: Client, lines: Iterable[Placed], looked: Callable[[], object] = lambda: None
) -> list[Planned]:
    """Compare every line with the server, without changes; call `looked` after each line."""
    known: dict[tuple[str, str, str], dict[str, Any]] = {}
    holders: dict[tuple[str, str, str], str] = {}
    lines = list(lines)
    for collection in {placed.collection for placed in lines}:
        for document in _documents(client, collection):
            whose = (collection, document["tenant"])
            known[*whose, document["name"]] = document
            if document["state"] != "failed":
                holders.setdefault((*whose, document["sha256"]), document["name"])
    planned = []
    for placed in lines:
        planned.append(_planned(placed, known, holders))
        looked()
    return planned


def _planned(
    placed: Placed,
    known: dict[tuple[str, str, str], dict[str, Any]],
    holders: dict[tuple[str, str, str], str],
) -> Planned:
    digest, reason = digest_of(placed.path)
    if digest is None:
        return Planned(placed, "missing", reason)
    whose = (placed.collection, placed.tenant)
    document = known.get((*whose, placed.name))
    if document is not None and _same(document, placed, digest):
        states: dict[str, State] = {"live": "unchanged", "failed": "again"}
        return Planned(placed, states.get(document["state"], "underway"))
    holder = holders.setdefault((*whose, digest), placed.name)
    if holder != placed.name and not placed.entry.allow_duplicate:
        return Planned(placed, "duplicate", f"{holder!r} has the same content")
    return Planned(placed, "new" if document is None else "changed")


def _same(document: dict[str, Any], placed: Placed, digest: str) -> bool:
    """Whether the server has the same content and fields already."""
    filename = clean_filename(placed.path.name)
    title = clean_line(placed.entry.title, "title") if placed.entry.title else filename
    current = (
        document["sha256"],
        document["filename"],
        document["title"],
        _text(document["properties"]),
    )
    if placed.entry.readers is not None:
        readers = check_readers(placed.entry.readers)
        if (document["readers"] or list(EVERYONE)) != list(readers):
            return False
    if placed.entry.url and document["url"] != clean_url(placed.entry.url):
        return False
    return current == (digest, filename, title, _text(placed.entry.all_properties()))


def _documents(client: Client, collection: str) -> Iterator[dict[str, Any]]:
    try:
        for document in client.documents(collection):
            yield plain(document)
    except NotFound:
        return


def digest_of(path: Path) -> tuple[str | None, str]:
    """The SHA-256 of the content, or the reason why it cannot be read."""
    if not path.is_file() and path.exists():
        return None, "it is no file"
    try:
        with path.open("rb", buffering=0) as file:
            digest = hashlib.sha256()
            while some := file.read(_BYTES_PER_READ):
                digest.update(some)
            return digest.hexdigest(), ""
    except (OSError, ValueError) as error:
        return None, getattr(error, "strerror", None) or "it cannot be read"


def _text(properties: dict[str, Any]) -> str:
    return json.dumps(properties, sort_keys=True)
