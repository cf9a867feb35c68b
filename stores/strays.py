"""What lies where nothing should: collections in a wrong store, files that no document owns."""

import time
from collections.abc import Mapping
from contextlib import suppress

from callslip.errors import CollectionNotFound, TenantNotFound
from stores.audit import FEW, Finding, told
from stores.blobs import Blobs
from stores.contract import Store
from stores.ledger import Ledger

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
        names = [name for name in store.collections() if only in (None, name)]
        homes = {record.name: record.store for record, _ in ledger.collections.all()}
        leaving = set(ledger.collections.deleted())
        for name in names:
            if name in leaving or ledger.inventory.moving(name) or homes.get(name) == kind:
                continue
            if name not in homes:
                findings.append(Finding("unknown-collection", kind, name, certain=False))
                continue
            ids = _all_documents(store, name)
            ours = bool(ids) and ids == ledger.inventory.documents(ids, removed=True)
            findings.append(Finding("foreign-copy", kind, name, ids=told(ids), certain=ours))
    return findings


def look_at_files(ledger: Ledger, blobs: Blobs) -> list[Finding]:
    """Files of documents that the ledger does not know, and live documents that lost theirs."""
    held = blobs.document_ids()
    orphans = held - ledger.inventory.documents(held)
    before = time.time() - FILES_SETTLE_SECONDS
    orphans = {i for i in orphans if 0 < blobs.changed_at(i) < before}
    missing = {i for i in ledger.inventory.with_files() - held if blobs.count(i) == 0}
    missing = ledger.inventory.with_files(missing)
    findings = []
    if orphans:
        certain = len(orphans) <= max(FEW, ledger.inventory.count())
        findings.append(Finding("orphan-files", BLOBS, ids=told(orphans), certain=certain))
    if missing:
        findings.append(Finding("missing-files", BLOBS, ids=told(missing)))
    return findings


def _all_documents(store: Store, collection: str) -> set[str]:
    ids: set[str] = set()
    with suppress(CollectionNotFound, TenantNotFound):  # it goes while it is looked at
        tenants = store.tenants(collection) if store.schema(collection).tenants else [""]
        for tenant in tenants:
            ids |= store.document_ids(collection, tenant=tenant)
    return ids
