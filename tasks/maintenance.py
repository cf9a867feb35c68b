"""Periodic work: send again what got stuck, remove what was deleted, tidy up."""

import contextlib
import logging
import time
from collections import Counter
from collections.abc import Iterator

from celery import Task, shared_task
from kombu.exceptions import OperationalError
from redis.lock import Lock

from callslip.errors import CallslipError, CollectionNotFound, InvalidRequest, TenantNotFound
from config import get_settings
from stores.contract import Store
from stores.ledger import DocumentRecord
from stores.ledger.receipts import greatest
from tasks import ingest
from tasks.process import backlog, blobs, broker, ledger, stores
from tasks.queues import BY_ROLE, MAINTENANCE

log = logging.getLogger(__name__)

LOCK_SECONDS = 60
"""For one item of work; a worker that was killed keeps the others out no longer than this."""

_NOT_THERE = (CollectionNotFound, TenantNotFound, InvalidRequest)
"""What a store says of a place that it has not, or can have none of the name."""

TEND_SECONDS = 900
"""For the stores' own work: refitting a million passages takes minutes."""


DAY_SECONDS = 86_400.0

COSTS_DAYS = 400
"""How long it is known what language models have used: a year is compared with the one before."""


@shared_task(name="maintenance.sweep")
def sweep() -> None:
    """Send what nobody works on and no message is on its way for."""
    settings = get_settings().ingest
    with alone("sweep") as lock:
        if lock is None:
            return
        idle = not any(backlog(queue) for queue in BY_ROLE["ingest"])
        stuck = ledger().sweep.stuck(
            idle=idle,
            resend_seconds=settings.resend_seconds,
            max_crashes=settings.max_attempts,
            window=ingest.window(),
        )
        for item in stuck:
            log.info("sending %s v%d from %s", item.document_id, item.version, item.step)
            ingest.send(item.document_id, item.version, item.step)
        for name in ledger().collections.deleted():
            lock.reacquire()
            _drop(name)
        for document_id in ledger().sweep.unremoved(resend_seconds=settings.resend_seconds):
            lock.reacquire()
            _remove(document_id)
        for collection, tenant in ledger().tenants.emptied():
            lock.reacquire()
            _drop_tenant(collection, tenant)
        for document_id in ledger().sweep.unpruned():
            lock.reacquire()
            _prune(document_id)


@shared_task(name="maintenance.remove")
def remove(document_id: str) -> None:
    """Remove what a deleted document left, and write the receipt."""
    _remove(document_id)


@shared_task(name="maintenance.drop")
def drop(name: str) -> None:
    """Remove what a deleted collection left."""
    _drop(name)


@shared_task(name="maintenance.trim")
def trim() -> None:
    """Keep the caches of vectors within their bounds; forget what is old of the rest."""
    with alone("trim") as lock:
        if lock is not None:
            ledger().vectors.trim(get_settings().embedder.cache_rows)
            ledger().token_vectors.trim(get_settings().rerank.cache_rows)
            now = time.time()
            ledger().model_usage.trim(now - COSTS_DAYS * DAY_SECONDS)
            before = now - get_settings().maintenance.keep_days * DAY_SECONDS
            ledger().events.trim(before)
            ledger().webhooks.trim(before)
            ledger().batches.trim(before)


@shared_task(name="maintenance.tend")
def tend() -> None:
    """Let every store do its work that can wait, such as refitting."""
    with alone("tend", TEND_SECONDS) as lock:
        for kind, held in stores().items() if lock is not None else ():
            with _put_off_on_error(f"upkeep of {kind}"):
                held.maintain()


def send_removal(document_id: str) -> None:
    """Queue the removal of a deleted document; without a broker the sweep will do it."""
    _send(remove, document_id)


def send_drop(name: str) -> None:
    """Queue the removal of a deleted collection; without a broker the sweep will do it."""
    _send(drop, name)


def _send(task: Task, name: str) -> None:
    try:
        task.apply_async((name,), queue=MAINTENANCE)
    except OperationalError as error:
        log.warning("the broker does not answer, the sweep will do %s: %s", task.name, error)


def _remove(document_id: str) -> None:
    """A worker that still holds a lease may yet write: the sweep comes back after it."""
    with _put_off_on_error(f"removal of {document_id}"):
        document = ledger().documents.get(document_id)
        if document.deleted_at is None or document.removed_at is not None:
            return
        if ledger().sweep.busy(document_id):
            return
        before = _counts(document)
        if document.receipt:  # it was interrupted, and some of it is gone already
            before = greatest(document.receipt["before"], before)
        ledger().documents.removing(document_id, before)
        for held in _holding(document.collection):
            with contextlib.suppress(*_NOT_THERE):
                held.delete_document(document.collection, document_id, tenant=document.tenant)
        blobs().delete(document_id)
        after = _counts(document)
        if any(after.values()):
            log.error("after removal %s still has %s", document_id, after)
            return
        ledger().chunks.forget(document_id)
        ledger().documents.removed(document_id, {"before": before, "after": after})


def _drop(name: str) -> None:
    """A late message finds the collection gone, or made anew and not to be touched."""
    with _put_off_on_error(f"removal of collection {name}"):
        if name not in ledger().collections.deleted():
            return
        document_ids = ledger().collections.document_ids(name)
        if any(ledger().sweep.busy(document_id) for document_id in document_ids):
            return
        before = _collection_counts(name, document_ids)
        before["documents"] = ledger().inventory.count(name)
        ledger().receipts.begin(name, "", before)
        holding = {} if ledger().collections.is_attached(name) else stores()
        for held in holding.values():
            with contextlib.suppress(InvalidRequest):
                held.drop_collection(name)
        for document_id in document_ids:
            blobs().delete(document_id)
        after = _collection_counts(name, document_ids)
        if any(after.values()):
            log.error("after removal collection %s still has %s", name, after)
            return
        ledger().receipts.finish(name, "", after)
        ledger().collections.forget(name)


def _prune(document_id: str) -> None:
    """Take chunks that no version from the live one on has out of the store."""
    with _put_off_on_error(f"pruning of {document_id}"):
        document = ledger().documents.get(document_id)
        ended = ledger().chunks.end(document_id)
        if not ended:  # chunks only stand elsewhere now
            return
        for held in _holding(document.collection):
            with contextlib.suppress(*_NOT_THERE):
                held.delete_chunks(document.collection, ended, tenant=document.tenant)
                halves = held.chunk_ids(document.collection, document_id, tenant=document.tenant)
                if left := ended & set().union(*halves.values()):
                    log.error(
                        "after pruning %s still has %d chunks of %s",
                        held.kind,
                        len(left),
                        document_id,
                    )
                    return
        ledger().chunks.forget(document_id, ended)


def _drop_tenant(collection: str, tenant: str) -> None:
    """Take a deleted tenant, of which every document is removed, out of the stores."""
    with _put_off_on_error(f"removal of tenant {tenant} of {collection}"):
        before = ledger().receipts.of_documents(collection, tenant)
        before.update(_place_counts(collection, tenant))
        ledger().receipts.begin(collection, tenant, before)
        for held in _holding(collection):
            with contextlib.suppress(InvalidRequest):
                held.drop_tenant(collection, tenant)
        after = _place_counts(collection, tenant)
        if any(after.values()):
            log.error("after removal tenant %s of %s still has %s", tenant, collection, after)
            return
        ledger().receipts.finish(collection, tenant, after)
        ledger().tenants.forget(collection, tenant)


def _holding(collection: str) -> list[Store]:
    """Every store that has the collection: a move may have left it in more than its own.

    One that is set up and does not answer is StoreDown: nobody could say what it still holds.
    None has an attached one, whatever another installation keeps under its name.
    """
    if ledger().collections.is_attached(collection):
        return []
    return [held for held in stores().values() if collection in held.collections()]


def _counts(document: DocumentRecord) -> dict[str, int]:
    """Objects of a document that each store, and the blob store, holds."""
    counts = {"blobs": blobs().count(document.document_id)}
    for held in _holding(document.collection):
        with contextlib.suppress(*_NOT_THERE):
            halves = held.chunk_ids(
                document.collection, document.document_id, tenant=document.tenant
            )
            counts |= {f"{held.kind} {half}": len(ids) for half, ids in halves.items()}
            records = held.get_documents(
                document.collection, [document.document_id], tenant=document.tenant
            )
            counts[f"{held.kind} document"] = len(records)
    return counts


def _collection_counts(name: str, document_ids: list[str]) -> Counter[str]:
    """Objects of a collection that each store, and the blob store, holds."""
    counts = Counter(blobs=sum(map(blobs().count, document_ids)))
    for tenant in sorted(ledger().tenants.names(name)) or [""]:
        counts.update(_place_counts(name, tenant))
    return counts


def _place_counts(collection: str, tenant: str) -> Counter[str]:
    """Objects of a collection without tenants, or of one tenant, that each store holds."""
    counts: Counter[str] = Counter()
    for held in _holding(collection):
        with contextlib.suppress(*_NOT_THERE):
            halves = held.chunk_ids(collection, tenant=tenant)
            counts.update({f"{held.kind} {half}": len(ids) for half, ids in halves.items()})
            counts[f"{held.kind} document"] += len(held.document_ids(collection, tenant=tenant))
    return counts


@contextlib.contextmanager
def _put_off_on_error(what: str) -> Iterator[None]:
    """One that cannot be done now holds up no other: the next sweep comes back to it."""
    try:
        yield
    except CallslipError as error:
        log.warning("%s put off: %s", what, error.detail)


@contextlib.contextmanager
def alone(name: str, seconds: float = LOCK_SECONDS) -> Iterator[Lock | None]:
    """The task's lock for the one process that got it; two schedulers double every task."""
    lock = broker().lock(f"lock:{name}", timeout=seconds, blocking=False)
    held = lock.acquire()
    try:
        yield lock if held else None
    finally:
        if held:
            with contextlib.suppress(Exception):  # it ran out: another may have it already
                lock.release()
