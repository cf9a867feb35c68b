"""Removes deleted documents and chunks that no version needs from the stores and the blobs.

Each function counts the objects in the stores before and after, stores the counts as a receipt, and
returns without an error if the removal cannot be done now: the next sweep tries again.
"""

import contextlib
import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from callslip.errors import CallslipError, CollectionNotFound, InvalidRequest, TenantNotFound
from callslip.stores.backend import Backend
from callslip.stores.batching import batches
from callslip.stores.contract import Store
from callslip.stores.ledger import DocumentRecord
from callslip.stores.ledger.collections.receipts import greatest

log = logging.getLogger(__name__)

AT_ONCE = 16
"""Documents of one collection and tenant that are removed, or pruned, together."""

_NOT_THERE = (CollectionNotFound, TenantNotFound, InvalidRequest)
"""Errors of a store that does not have a collection or tenant, or cannot have one of this name."""


def remove_documents(
    backend: Backend, document_ids: Iterable[str], renew: Callable[[], object] = lambda: None
) -> None:
    """Remove the remaining data of deleted documents, and write the receipts.

    Documents of one collection and tenant are removed together, or after an error each alone.
    `renew` is called before each of these removals, and may raise an error to end the work.
    Nothing of a document is removed while a worker holds a lease on it, because the worker may
    still write.
    """
    ledger = backend.ledger
    with put_off_on_error("removal of deleted documents"):
        due = [
            document
            for document in ledger.documents.get_all(document_ids)
            if document.deleted_at is not None and document.removed_at is None
            if not ledger.sweep.busy(document.document_id)
        ]
        _together("removal", due, partial(_remove, backend), renew)


def _together(
    what: str,
    documents: Iterable[DocumentRecord],
    act: Callable[[str, str, Sequence[str]], None],
    renew: Callable[[], object],
) -> None:
    """Call `act` with the documents of one collection and tenant, at most AT_ONCE.

    After an error, call it with each of these documents alone.
    """
    by_scope: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for document in documents:
        by_scope[document.collection, document.tenant].append(document.document_id)
    for (collection, tenant), ids in by_scope.items():
        for some in batches(ids, lambda: AT_ONCE):
            if len(some) > 1:
                renew()
                with contextlib.suppress(CallslipError):  # perhaps because of one of them
                    act(collection, tenant, some)
                    continue
            for document_id in some:
                renew()
                with put_off_on_error(f"{what} of {document_id}"):
                    act(collection, tenant, [document_id])


def _remove(backend: Backend, collection: str, tenant: str, ids: Sequence[str]) -> None:
    """Remove documents of one scope."""
    ledger, stores = backend.ledger, _stores_with(backend, collection)
    before = _counts(backend, stores, collection, tenant, ids)
    for document in ledger.documents.get_all(ids):
        # An earlier removal was perhaps interrupted after it had removed some objects.
        if document.receipt:
            its = before[document.document_id]
            before[document.document_id] = greatest(document.receipt["before"], its)
    ledger.documents.removing(before)
    for store in stores:
        with contextlib.suppress(*_NOT_THERE):
            store.delete_documents(collection, ids, tenant=tenant)
    for document_id in ids:
        backend.blobs.delete(document_id)
    for document_id, after in _counts(backend, stores, collection, tenant, ids).items():
        if any(after.values()):
            log.error("after removal %s still has %s", document_id, after)
            continue
        ledger.chunks.forget(document_id)
        ledger.documents.removed(document_id, {"before": before[document_id], "after": after})


def drop_collection(
    backend: Backend, name: str, renew: Callable[[], object] = lambda: None
) -> None:
    """Remove the remaining data of a deleted collection, and write the receipt.

    A collection that is removed already, or was created again under the same name, is not changed.
    `renew` is called for each document whenever its files are counted or removed, which may take
    hours in a bucket. It may raise an error to end the work: one process at a time may do it.
    """
    ledger = backend.ledger
    with put_off_on_error(f"removal of collection {name}"):
        if name not in ledger.collections.deleted():
            return
        document_ids = ledger.collections.document_ids(name)
        if any(map(ledger.sweep.busy, document_ids)):
            return
        before = _collection_counts(backend, name, _renewing(document_ids, renew))
        before["documents"] = ledger.inventory.count(name)
        ledger.receipts.begin(name, "", before)
        stores = {} if ledger.collections.is_attached(name) else backend.stores()
        for store in stores.values():
            with contextlib.suppress(InvalidRequest):
                store.drop_collection(name)
        for document_id in _renewing(document_ids, renew):
            backend.blobs.delete(document_id)
        after = _collection_counts(backend, name, _renewing(document_ids, renew))
        if any(after.values()):
            log.error("after removal collection %s still has %s", name, after)
            return
        ledger.receipts.finish(name, "", after)
        ledger.collections.forget(name)


def drop_tenant(backend: Backend, collection: str, tenant: str) -> None:
    """Remove a deleted tenant from the stores, once all of its documents are removed.

    A tenant that is removed already, or was created again under the same name, is not changed.
    """
    ledger = backend.ledger
    with put_off_on_error(f"removal of tenant {tenant} of {collection}"):
        before = ledger.receipts.of_documents(collection, tenant)
        before.update(_scope_counts(backend, collection, tenant))
        ledger.receipts.begin(collection, tenant, before)
        for store in _stores_with(backend, collection):
            if (collection, tenant) not in ledger.tenants.emptied():
                return  # another process has removed it, and its name may be in use again
            with contextlib.suppress(InvalidRequest):
                store.drop_tenant(collection, tenant)
        after = _scope_counts(backend, collection, tenant)
        if any(after.values()):
            log.error("after removal tenant %s of %s still has %s", tenant, collection, after)
            return
        ledger.receipts.finish(collection, tenant, after)
        ledger.tenants.forget(collection, tenant)


def prune_documents(
    backend: Backend, document_ids: Iterable[str], renew: Callable[[], object] = lambda: None
) -> None:
    """Remove the chunks of versions before the live one from the stores.

    Documents of one collection and tenant are pruned together, or after an error each alone.
    `renew` is called before each of these, and may raise an error to end the work: one process at a
    time may prune a document.
    """
    with put_off_on_error("pruning of documents"):
        documents = backend.ledger.documents.get_all(document_ids)
        _together("pruning", documents, partial(_prune, backend), renew)


def _prune(backend: Backend, collection: str, tenant: str, ids: Sequence[str]) -> None:
    """Prune documents of one scope."""
    chunks = backend.ledger.chunks
    ended = {i: chunk_ids for i in ids if (chunk_ids := chunks.end(i))}
    if not ended:  # only the positions of chunks changed
        return
    stays = set[str]()
    for store in _stores_with(backend, collection):
        with contextlib.suppress(*_NOT_THERE):
            store.delete_chunks(collection, set().union(*ended.values()), tenant=tenant)
            stored = store.chunk_ids_of(collection, list(ended), tenant=tenant)
            for document_id, halves in stored.items():
                if left := ended[document_id] & set().union(*halves.values()):
                    log.error(
                        "after pruning %s still has %d chunks of %s",
                        store.kind,
                        len(left),
                        document_id,
                    )
                    stays.add(document_id)
    for document_id in ended.keys() - stays:
        chunks.forget(document_id, ended[document_id])


def _stores_with(backend: Backend, collection: str) -> list[Store]:
    """Return every store that has the collection, because a move may have left a copy of it.

    Raises StoreDown if a configured store does not answer, because its content is then unknown. An
    attached collection is in no store, even if another installation uses its name there.
    """
    if backend.ledger.collections.is_attached(collection):
        return []
    return [store for store in backend.stores().values() if collection in store.collections()]


def _counts(
    backend: Backend, stores: Sequence[Store], collection: str, tenant: str, ids: Sequence[str]
) -> dict[str, dict[str, int]]:
    """Return the number of objects of each document in these stores and in the blob store."""
    counts = {document_id: {"blobs": backend.blobs.count(document_id)} for document_id in ids}
    for store in stores:
        with contextlib.suppress(*_NOT_THERE):
            records = store.get_documents(collection, ids, tenant=tenant)
            stored = {record.document_id for record in records}
            chunk_ids = store.chunk_ids_of(collection, ids, tenant=tenant)
            for document_id, of_document in counts.items():
                halves = chunk_ids[document_id]
                of_document |= {f"{store.kind} {half}": len(each) for half, each in halves.items()}
                of_document[f"{store.kind} document"] = int(document_id in stored)
    return counts


def _renewing(document_ids: Iterable[str], renew: Callable[[], object]) -> Iterator[str]:
    for document_id in document_ids:
        renew()
        yield document_id


def _collection_counts(backend: Backend, name: str, document_ids: Iterable[str]) -> Counter[str]:
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
def put_off_on_error(what: str) -> Iterator[None]:
    """Log a failed removal and continue with the others: the next sweep tries it again."""
    try:
        yield
    except CallslipError as error:
        log.warning("%s put off: %s", what, error.detail)
