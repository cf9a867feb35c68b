"""What lies where nothing should: collections in a wrong store, files that no document owns."""

import time
from collections.abc import Mapping
from contextlib import suppress

from callslip.errors import CallslipError, CollectionNotFound, TenantNotFound
from stores.audit import FEW, Finding, broken_place, told
from stores.blobs import Blobs, original_name
from stores.contract import Store
from stores.ledger import Ledger
from stores.ledger.inventory import Files

BLOBS = "blobs"
"""Named as the store of findings about originals and artifacts."""

FILES_SETTLE_SECONDS = 3600.0
"""Files come before their document is in the ledger; younger ones are not judged."""


def look_aside(
    ledger: Ledger, stores: Mapping[str, Store], only: str | None = None
) -> list[Finding]:
    """Collections where they should not be: in another store than their own, or unknown.

    A copy is surely ours when the ledger knows every document in it, and one at least. An unknown
    collection is never ours to remove: another installation may share the server.
    """
    findings = []
    for kind, store in stores.items():
        for name in store.collections():
            if only in (None, name) and (finding := _stray(ledger, kind, store, name)):
                findings.append(finding)
    return findings


def _stray(ledger: Ledger, kind: str, store: Store, name: str) -> Finding | None:
    """The ledger is asked name by name: a collection may move while others are looked at."""
    if ledger.inventory.moving(name) or name in ledger.collections.deleted():
        return None
    try:
        if ledger.collections.get(name).store == kind:
            return None
    except CollectionNotFound:
        there = name in store.collections()  # it may have been deleted meanwhile
        return Finding("unknown-collection", kind, name, certain=False) if there else None
    try:
        ids = all_documents(store, name)
    except CallslipError as error:
        return broken_place(store, Finding("broken-place", kind, name), error)
    ours = bool(ids) and ids == ledger.inventory.ever_held(name, ids)
    return Finding("foreign-copy", kind, name, ids=told(ids), certain=ours)


def all_documents(store: Store, collection: str) -> set[str]:
    """Ids of what a store holds of a collection, of every tenant; none where it is not there."""
    ids: set[str] = set()
    with suppress(CollectionNotFound, TenantNotFound):  # it goes while it is looked at
        tenants = store.tenants(collection) if store.schema(collection).tenants else [""]
        for tenant in tenants:
            ids |= store.document_ids(collection, tenant=tenant)
    return ids


def look_at_files(ledger: Ledger, blobs: Blobs) -> list[Finding]:
    """Files of documents that the ledger does not know, and live documents that lack theirs."""
    findings = []
    if orphans := ownerless(ledger, blobs, blobs.document_ids()):
        certain = len(orphans) <= max(FEW, ledger.inventory.count())
        findings.append(Finding("orphan-files", BLOBS, ids=told(orphans), certain=certain))
    lacking: dict[str, set[str]] = {"original": set(), "text": set()}
    for page in ledger.inventory.files():
        suspects = {i: files for i, files in page.items() if _lacks(blobs, i, files)}
        again = ledger.inventory.files_of(suspects)
        settled = {i for i, item in ledger.inventory.items(list(suspects)).items() if item.settled}
        for document_id in settled & again.keys():
            if half := _lacks(blobs, document_id, again[document_id]):
                lacking[half].add(document_id)
    for half, ids in lacking.items():
        if ids:
            findings.append(Finding("missing-files", BLOBS, half=half, ids=told(ids)))
    return findings


def ownerless(ledger: Ledger, blobs: Blobs, document_ids: set[str]) -> set[str]:
    """Those of the documents that have files, none of them young, and are not in the ledger."""
    before = time.time() - FILES_SETTLE_SECONDS
    strangers = document_ids - ledger.inventory.owners(document_ids)
    old = {i for i in strangers if 0 < blobs.changed_at(i) < before}
    return old - ledger.inventory.owners(old)


def _lacks(blobs: Blobs, document_id: str, files: Files) -> str:
    """Which of its files a document has not, if any; without its original that comes first."""
    held = blobs.names(document_id)
    if original_name(files.sha256) not in held:
        return "original"
    return "text" if files.text is not None and files.text not in held else ""
