"""What a manifest would change: each file compared with what the desk has under its name."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from callslip.errors import NotFound
from cli.client import Client
from cli.manifest import Placed
from stores.naming import clean_filename, clean_line

State = Literal["new", "changed", "again", "underway", "unchanged", "duplicate", "missing"]
"""again: it failed, and is tried again; underway: sent before, and not live yet; duplicate: the
same content stands under another name; missing: there is no such file."""

TO_SEND: tuple[State, ...] = ("new", "changed", "again", "underway")
STATES: tuple[State, ...] = (*TO_SEND, "unchanged", "duplicate", "missing")

HASH_BYTES = 1 << 20


@dataclass(frozen=True)
class Planned:
    """A line and what sending it would do; `reason` where it cannot be sent."""

    placed: Placed
    state: State
    reason: str = ""


def plan(
    client: Client, lines: Iterable[Placed], looked: Callable[[], object] = lambda: None
) -> list[Planned]:
    """Compare every line with the desk, changing nothing; `looked` is called after each."""
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
    digest, reason = _sha256(placed.path)
    if digest is None:
        return Planned(placed, "missing", reason)
    whose = (placed.collection, placed.tenant)
    found = known.get((*whose, placed.name))
    if found is not None and _same(found, placed, digest):
        states: dict[str, State] = {"live": "unchanged", "failed": "again"}
        return Planned(placed, states.get(found["state"], "underway"))
    holder = holders.setdefault((*whose, digest), placed.name)
    if holder != placed.name and not placed.entry.allow_duplicate:
        return Planned(placed, "duplicate", f"{holder!r} has the same content")
    return Planned(placed, "new" if found is None else "changed")


def _same(found: dict[str, Any], placed: Placed, digest: str) -> bool:
    """Whether the desk would find nothing new in it."""
    filename = clean_filename(placed.path.name)
    title = clean_line(placed.entry.title) if placed.entry.title else filename
    told = (found["sha256"], found["filename"], found["title"], _text(found["properties"]))
    return told == (digest, filename, title, _text(placed.entry.all_properties()))


def _documents(client: Client, collection: str) -> Iterator[dict[str, Any]]:
    try:
        yield from client.documents(collection)
    except NotFound:
        return


def _sha256(path: Path) -> tuple[str | None, str]:
    """The content's digest, or why there is none."""
    if path.exists() and not path.is_file():
        return None, "it is no file"
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while block := file.read(HASH_BYTES):
                digest.update(block)
    except (OSError, ValueError) as error:
        return None, getattr(error, "strerror", None) or "it cannot be read"
    return digest.hexdigest(), ""


def _text(properties: dict[str, Any]) -> str:
    return json.dumps(properties, sort_keys=True)
