"""Finds collections in the wrong store, and files that no document owns."""

import time
from collections.abc import Mapping
from contextlib import suppress

from callslip.errors import CallslipError, CollectionNotFound, TenantNotFound
from callslip.stores.audit.comparison import FEW, Finding, broken_scope, sorted_ids
from callslip.stores.blobs import Blobs, original_name
from callslip.stores.contract import Store
from callslip.stores.ledger import Ledger
from callslip.stores.ledger.documents.inventory import Files
from callslip.stores.sides import SECOND

BLOBS = "blobs"
"""The name of the store in findings about originals and artifacts."""

FILES_SETTLE_SECONDS = 3600.0
"""The least age of an orphaned file: files are written before their document is in the ledger."""


def find_misplaced_collections(
    ledger: Ledger, stores: Mapping[str, Store], only: str | None = None
) -> list[Finding]:
    """Find collections that are in another store than the ledger names, or unknown to the ledger.

    Leaves out the copies that moves left on purpose.
    A copy certainly belongs to this installation if it has at least one document and the ledger
    knows every document in it. An unknown collection is never certain: another installation may
    share the server.
    """
    findings = []
    for kind, store in stores.items():
        for name in (n for n in store.collections() if not n.endswith(SECOND)):
            if only in (None, name) and (finding := _misplaced(ledger, kind, store, name)):
                findings.append(finding)
    return findings


def _misplaced(ledger: Ledger, kind: str, store: Store, name: str) -> Finding | None:
    """Check one collection. Reads the ledger each time: the collection may have moved meanwhile."""
    if ledger.inventory.moving(name) or name in ledger.collections.deleted():
        return None
    try:
        if ledger.collections.get(name).store == kind or ledger.moves.left_copy(name, kind):
            return None
    except CollectionNotFound:
        there = name in store.collections()  # it may have been deleted meanwhile
        return Finding("unknown-collection", kind, name, certain=False) if there else None
    try:
        ids = all_documents(store, name)
    except CallslipError as error:
        return broken_scope(store, Finding("broken-place", kind, name), error)
    ours = bool(ids) and ids == ledger.inventory.ever_stored(name, ids)
    return Finding("foreign-copy", kind, name, ids=sorted_ids(ids), certain=ours)


def all_documents(store: Store, collection: str) -> set[str]:
    """The ids of all documents of a collection in a store, over all tenants.

    Empty if the store has no such collection.
    """
    ids: set[str] = set()
    with suppress(CollectionNotFound, TenantNotFound):  # dropped meanwhile
        tenants = store.tenants(collection) if store.schema(collection).tenants else [""]
        for tenant in tenants:
            ids |= store.document_ids(collection, tenant=tenant)
    return ids


def audit_files(ledger: Ledger, blobs: Blobs) -> list[Finding]:
    """Find files of documents unknown to the ledger, and live documents that lack a file."""
    findings = []
    if orphans := ownerless(ledger, blobs, blobs.document_ids()):
        certain = len(orphans) <= max(FEW, ledger.inventory.count())
        findings.append(Finding("orphan-files", BLOBS, ids=sorted_ids(orphans), certain=certain))
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
            findings.append(Finding("missing-files", BLOBS, half=half, ids=sorted_ids(ids)))
    return findings


def ownerless(ledger: Ledger, blobs: Blobs, document_ids: set[str]) -> set[str]:
    """The ids among these that have files, only old ones, and that the ledger does not know.

    A file is old after FILES_SETTLE_SECONDS.
    """
    before = time.time() - FILES_SETTLE_SECONDS
    strangers = document_ids - ledger.inventory.owners(document_ids)
    old = {i for i in strangers if 0 < blobs.changed_at(i) < before}
    return old - ledger.inventory.owners(old)


def _lacks(blobs: Blobs, document_id: str, files: Files) -> str:
    """The file that a document lacks: "original", "text", or "" if it lacks neither."""
    names = blobs.names(document_id)
    if original_name(files.sha256) not in names:
        return "original"
    return "text" if files.text is not None and files.text not in names else ""
