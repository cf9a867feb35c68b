"""Removes deleted documents and chunks that no version needs from the stores and the blobs.

Each function counts the objects in the stores before and after, stores the counts as a receipt, and
returns without an error if the removal cannot be done now: the next sweep tries again.
"""

import contextlib
import logging
from collections import Counter
from collections.abc import Iterator

from callslip.errors import CallslipError, CollectionNotFound, InvalidRequest, TenantNotFound
from callslip.stores.backend import Backend
from callslip.stores.contract import Store
from callslip.stores.ledger import DocumentRecord
from callslip.stores.ledger.collections.receipts import greatest

log = logging.getLogger(__name__)

_NOT_THERE = (CollectionNotFound, TenantNotFound, InvalidRequest)
"""Errors of a store that does not have a collection or tenant, or cannot have one of this name."""


def remove_document(backend: Backend, document_id: str) -> None:
    """Remove the remaining data of a deleted document, and write the receipt.

    Nothing is removed while a worker holds a lease on the document, because it may still write.
    """
    ledger = backend.ledger
    with _put_off_on_error(f"removal of {document_id}"):
        document = ledger.documents.get(document_id)
        if document.deleted_at is None or document.removed_at is not None:
            return
        if ledger.sweep.busy(document_id):
            return
        before = _counts(backend, document)
        if document.receipt:  # an earlier removal was interrupted after it had removed some objects
            before = greatest(document.receipt["before"], before)
        ledger.documents.removing(document_id, before)
        for store in _stores_with(backend, document.collection):
            with contextlib.suppress(*_NOT_THERE):
                store.delete_document(document.collection, document_id, tenant=document.tenant)
        backend.blobs.delete(document_id)
        after = _counts(backend, document)
        if any(after.values()):
            log.error("after removal %s still has %s", document_id, after)
            return
        ledger.chunks.forget(document_id)
        ledger.documents.removed(document_id, {"before": before, "after": after})


def drop_collection(backend: Backend, name: str) -> None:
    """Remove the remaining data of a deleted collection, and write the receipt.

    A collection that is removed already, or was created again under the same name, is not changed.
    """
    ledger = backend.ledger
    with _put_off_on_error(f"removal of collection {name}"):
        if name not in ledger.collections.deleted():
            return
        document_ids = ledger.collections.document_ids(name)
        if any(ledger.sweep.busy(document_id) for document_id in document_ids):
            return
        before = _collection_counts(backend, name, document_ids)
        before["documents"] = ledger.inventory.count(name)
        ledger.receipts.begin(name, "", before)
        stores = {} if ledger.collections.is_attached(name) else backend.stores()
        for store in stores.values():
            with contextlib.suppress(InvalidRequest):
                store.drop_collection(name)
        for document_id in document_ids:
            backend.blobs.delete(document_id)
        after = _collection_counts(backend, name, document_ids)
        if any(after.values()):
            log.error("after removal collection %s still has %s", name, after)
            return
        ledger.receipts.finish(name, "", after)
        ledger.collections.forget(name)


def drop_tenant(backend: Backend, collection: str, tenant: str) -> None:
    """Remove a deleted tenant from the stores, once all of its documents are removed."""
    ledger = backend.ledger
    with _put_off_on_error(f"removal of tenant {tenant} of {collection}"):
        before = ledger.receipts.of_documents(collection, tenant)
        before.update(_scope_counts(backend, collection, tenant))
        ledger.receipts.begin(collection, tenant, before)
        for store in _stores_with(backend, collection):
            with contextlib.suppress(InvalidRequest):
                store.drop_tenant(collection, tenant)
        after = _scope_counts(backend, collection, tenant)
        if any(after.values()):
            log.error("after removal tenant %s of %s still has %s", tenant, collection, after)
            return
        ledger.receipts.finish(collection, tenant, after)
        ledger.tenants.forget(collection, tenant)


def prune_document(backend: Backend, document_id: str) -> None:
    """Remove the chunks of versions before the live one from the stores."""
    ledger = backend.ledger
    with _put_off_on_error(f"pruning of {document_id}"):
        document = ledger.documents.get(document_id)
        ended = ledger.chunks.end(document_id)
        if not ended:  # only the positions of chunks changed
            return
        for store in _stores_with(backend, document.collection):
            with contextlib.suppress(*_NOT_THERE):
                store.delete_chunks(document.collection, ended, tenant=document.tenant)
                halves = store.chunk_ids(document.collection, document_id, tenant=document.tenant)
                if left := ended & set().union(*halves.values()):
                    log.error(
                        "after pruning %s still has %d chunks of %s",
                        store.kind,
                        len(left),
                        document_id,
                    )
                    return
        ledger.chunks.forget(document_id, ended)


def _stores_with(backend: Backend, collection: str) -> list[Store]:
    """Return every store that has the collection, because a move may have left a copy of it.

    Raises StoreDown if a configured store does not answer, because its content is then unknown. An
    attached collection is in no store, even if another installation uses its name there.
    """
    if backend.ledger.collections.is_attached(collection):
        return []
    return [store for store in backend.stores().values() if collection in store.collections()]


def _counts(backend: Backend, document: DocumentRecord) -> dict[str, int]:
    """Return the number of objects of a document in each store and in the blob store."""
    counts = {"blobs": backend.blobs.count(document.document_id)}
    for store in _stores_with(backend, document.collection):
        with contextlib.suppress(*_NOT_THERE):
            halves = store.chunk_ids(
                document.collection, document.document_id, tenant=document.tenant
            )
            counts |= {f"{store.kind} {half}": len(ids) for half, ids in halves.items()}
            records = store.get_documents(
                document.collection, [document.document_id], tenant=document.tenant
            )
            counts[f"{store.kind} document"] = len(records)
    return counts


def _collection_counts(backend: Backend, name: str, document_ids: list[str]) -> Counter[str]:
    """Return the number of objects of a collection in each store and in the blob store."""
    counts = Counter(blobs=sum(map(backend.blobs.count, document_ids)))
    for tenant in sorted(backend.ledger.tenants.names(name)) or [""]:
        counts.update(_scope_counts(backend, name, tenant))
    return counts


def _scope_counts(backend: Backend, collection: str, tenant: str) -> Counter[str]:
    """Return the objects of a tenant, or of a collection without tenants, counted by store."""
    counts: Counter[str] = Counter()
    for store in _stores_with(backend, collection):
        with contextlib.suppress(*_NOT_THERE):
            halves = store.chunk_ids(collection, tenant=tenant)
            counts.update({f"{store.kind} {half}": len(ids) for half, ids in halves.items()})
            counts[f"{store.kind} document"] += len(store.document_ids(collection, tenant=tenant))
    return counts


@contextlib.contextmanager
def _put_off_on_error(what: str) -> Iterator[None]:
    """Log a failed removal and continue with the others: the next sweep tries it again."""
    try:
        yield
    except CallslipError as error:
        log.warning("%s put off: %s", what, error.detail)
