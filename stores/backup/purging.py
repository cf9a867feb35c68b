"""Purges backups: writes their parts again without the rows that a purge's receipt is about.

Equal rows make equal objects, so only objects with such a row are written again. A manifest is
replaced by one of the same time; then the objects that no backup refers to are removed.
"""

import base64
import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from callslip.stores.backup import manifest as manifests
from callslip.stores.backup.destination import Destination
from callslip.stores.backup.making import PURGES, Progress
from callslip.stores.backup.manifest import CONVERSATIONS, LEDGER, Manifest, Part
from callslip.stores.backup.parts import NameSet, Writer, rows
from callslip.stores.backup.thinning import remove_unused
from callslip.stores.ledger.purge import mentions, users_of

_TOKENS = re.compile(rb"[0-9a-f]{32}")


def purge_backups(
    destination: Destination,
    receipt: dict[str, Any],
    progress: Progress = lambda _phase, _done: None,
) -> dict[str, int]:
    """Remove what a receipt is about from all backups; return counts of what was removed.

    The receipt is stored first, so that a restore of any backup repeats the purge, also if this
    call is killed. Raises BackupError if a backup is damaged.
    """
    destination.write(PURGES, receipt["name"], receipt)
    removed = 0
    with NameSet(destination.objects()) as present:
        for name in destination.names(manifests.FOLDER):
            manifest = manifests.read(destination, name)
            ids = _ids(destination, manifest, receipt)
            parts, count = {}, 0
            for key, part in manifest.parts.items():
                tenant = "name" if key == LEDGER + "tenants" else "tenant"
                scope = (_scope(receipt), ("collection", tenant))
                parts[key] = part
                if key != LEDGER + "audit_log":  # a chain, with ids alone
                    parts[key] = _filtered(destination, present, part, ids, scope)
                count += part.rows - parts[key].rows
                progress("backups", part.rows)
            if not count:
                continue
            removed += count
            probes = {
                collection: replace(
                    each,
                    answers=[
                        a
                        for a in each.answers
                        if not ids & {a.probe.chunk_id, *(i for x in a.answers.values() for i in x)}
                    ],
                )
                for collection, each in manifest.probes.items()
            }
            manifests.write(destination, replace(manifest, parts=parts, probes=probes))
            destination.remove(manifests.FOLDER, name)
    return {"rows": removed, "objects": remove_unused(destination)}


def _scope(receipt: dict[str, Any]) -> tuple[str, str] | None:
    what = receipt["what"]
    return (what["collection"], what["tenant"]) if "tenant" in what else None


def _ids(destination: Destination, manifest: Manifest, receipt: dict[str, Any]) -> set[str]:
    """The ids whose rows are to be removed, as this backup knows them."""
    what, scope = receipt["what"], _scope(receipt)
    ids = {*receipt["document_ids"], *filter(None, [what.get("owner")])}

    def table(name: str) -> Any:
        part = manifest.table(name)
        for row in rows(destination, part):
            yield dict(zip(part.columns, row, strict=True))

    for row in table("documents"):
        if (row["collection"], row["tenant"]) == scope or row["parent_id"] in ids:
            ids.add(row["document_id"])
    ids |= {row["chunk_id"] for row in table("chunks") if row["document_id"] in ids}
    scopes = {
        (row["collection"], row["tenant"])
        for row in table("documents")
        if row["document_id"] in ids
    }
    searches = set()
    for name in ("retrieval_events", "traces"):
        for row in table(name):
            if _mentions(list(row), row.values(), ids):
                searches.add(row["trace_id"])
    user = what.get("user_sha256")
    for row in table("outcomes"):
        if user and digest_of(row["user"]) == user:
            ids.add(row["outcome_id"])
            searches.add(row["trace_id"])
    ids |= searches
    for row in table("conversations"):
        of_user = user and any(digest_of(name) == user for name in users_of(row["thread_id"]))
        of_owner = bool(what.get("owner")) and row["owner"] == what["owner"]
        if of_user or of_owner or (row["collection"], row["tenant"]) == scope:
            ids.add(row["key"])
    if scopes:
        ids |= _answering(destination, manifest, searches, scopes)
    return ids


def _answering(
    destination: Destination,
    manifest: Manifest,
    searches: set[str],
    scopes: set[tuple[str, str]],
) -> set[str]:
    """The keys of conversations with a search of these, or with one that has no record."""
    part = manifest.table("retrieval_events")
    at = part.columns.index("trace_id")
    known = {row[at] for row in rows(destination, part)} - searches
    part = manifest.table("traces")
    at = part.columns.index("trace_id")
    known |= {row[at] for row in rows(destination, part)} - searches
    part = manifest.table("conversations")
    names = [part.columns.index(name) for name in ("key", "collection", "tenant")]
    of_scopes = set()
    for row in rows(destination, part):
        key, collection, tenant = (row[i] for i in names)
        if (collection, tenant) in scopes:
            of_scopes.add(key)
    keys = set()
    for key, state in rows(destination, manifest.part(CONVERSATIONS)):
        if key in of_scopes:
            tokens = {token.decode() for token in _TOKENS.findall(base64.b64decode(state))}
            if not known & tokens or searches & tokens:
                keys.add(key)
    return keys


def _filtered(
    destination: Destination,
    present: NameSet,
    part: Part,
    ids: set[str],
    scope: tuple[tuple[str, str] | None, tuple[str, str]],
) -> Part:
    """The part without rows that mention one of these ids, or that are of the scope.

    `scope` has the collection and the tenant, and the names of their columns.
    """
    values, names = scope
    of = [part.columns.index(name) for name in names if name in part.columns]
    writer = Writer(destination, present, part.columns)
    for row in rows(destination, part):
        if values is not None and [row[i] for i in of] == [*values]:
            continue
        if not _mentions(part.columns, row, ids):
            writer.add(row)
    return writer.part()


def _mentions(columns: Sequence[str], row: Iterable[Any], ids: set[str]) -> bool:
    """Whether a row of a backup, in which bytes are base64, has one of these ids."""
    values = (
        base64.b64decode(value) if name == "packed" and value else value
        for name, value in zip(columns, row, strict=True)
    )
    return mentions(values, ids)


def digest_of(text: str) -> str:
    """The SHA-256 of a text, by which a receipt names a user."""
    return hashlib.sha256(text.encode()).hexdigest()
