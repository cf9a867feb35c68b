"""Periodic tasks: resend work that got stuck, remove deleted data, trim old data."""

import logging
import time

from celery import Task, shared_task
from kombu.exceptions import OperationalError

from callslip.errors import CallslipError
from callslip.ingestion.maintenance.removal import (
    AT_ONCE,
    drop_collection,
    drop_tenant,
    prune_documents,
    put_off_on_error,
    remove_documents,
)
from callslip.ingestion.pipeline import MAX_WAIT_SECONDS
from callslip.stores.sqlite_logs import empty_logs
from callslip.tasks import ingest
from callslip.tasks.composition import Context, current
from callslip.tasks.queues import BY_STEP, MAINTENANCE
from callslip.tasks.shared.broker import backlog
from callslip.tasks.shared.locks import alone

log = logging.getLogger(__name__)

MAINTAIN_SECONDS = 900
"""Seconds that the stores' maintenance may take: refitting a million passages takes minutes."""

DROP_SECONDS = 900
"""Seconds that removing a collection or tenant may take; a killed one is tried again after them."""

EMPTY_LOGS_SECONDS = 300.0

QUIET_SECONDS = 10.0
"""Seconds without a write after which a log of SQLite is emptied."""

DAY_SECONDS = 86_400.0

COSTS_DAYS = 400
"""Days for which the usage of language models stays, to compare a year with the previous one."""


@shared_task(name="maintenance.canary")
def canary() -> None:
    """Do nothing. A queue in which this message waits has a stalled worker (`pool.stall`)."""


@shared_task(name="maintenance.sweep")
def sweep() -> None:
    """Send versions again that have neither a worker nor a message; remove deleted data."""
    context = current()
    backend, settings = context.backend, context.settings.ingest
    ledger = backend.ledger
    with alone(context.broker, "sweep") as lock:
        if lock is None:
            return
        ledger.sweep.bound_times(
            lease_seconds=settings.lease_seconds, wait_seconds=MAX_WAIT_SECONDS
        )
        idle = not any(backlog(context.broker, queue) for queue in set(BY_STEP.values()))
        for document_id, version in ledger.readers.due():
            ledger.leases.reopen(document_id, version, "upsert")
        stuck = ledger.sweep.stuck(
            idle=idle,
            resend_seconds=settings.resend_seconds,
            max_crashes=settings.max_attempts,
            window=ingest.window(context),
        )
        for item in stuck:
            log.info("sending %s v%d from %s", item.document_id, item.version, item.step)
        ingest.send_all(context, stuck)
        for name in ledger.collections.deleted():
            lock.reacquire()
            _drop(context, name)
        unremoved = ledger.sweep.unremoved(resend_seconds=settings.resend_seconds)
        remove_documents(backend, unremoved, lock.reacquire)
        for collection, tenant in ledger.tenants.emptied():
            lock.reacquire()
            with alone(context.broker, f"drop:{collection}/{tenant}", DROP_SECONDS) as drop_lock:
                if drop_lock is not None:
                    drop_tenant(backend, collection, tenant)
        prune_documents(backend, ledger.sweep.unpruned(), lock.reacquire)


@shared_task(name="maintenance.remove")
def remove(document_id: str) -> None:
    """Remove the data of a deleted document, and of others of its collection, with receipts."""
    context = current()
    with put_off_on_error(f"removal of {document_id}"):
        document = context.ledger.documents.get(document_id)
        if document.removed_at is None:
            _remove_deleted(context, document.collection)


def _remove_deleted(context: Context, collection: str) -> None:
    """Remove what is deleted in a collection, some documents at once.

    Each deletion has a message, and one message at a time does this for all. It looks again after
    it has released its lock, because the messages that arrive before do nothing.
    """
    tried: set[str] = set()

    def deleted() -> list[str]:
        ids = context.ledger.sweep.deleted(collection, limit=AT_ONCE + len(tried))
        return [each for each in ids if each not in tried][:AT_ONCE]

    while ids := deleted():
        with alone(context.broker, f"removal:{collection}") as lock:
            if lock is None:
                return
            while ids:
                tried.update(ids)
                remove_documents(context.backend, ids, lock.reacquire)
                ids = deleted()


@shared_task(name="maintenance.drop")
def drop(name: str) -> None:
    """Remove the data of a deleted collection, and write the receipt."""
    _drop(current(), name)


def _drop(context: Context, name: str) -> None:
    """Remove a deleted collection, unless another process removes it.

    The first removal frees the name at its end: a second one would then remove the tables of a new
    collection of this name.
    """
    with alone(context.broker, f"drop:{name}", DROP_SECONDS) as lock:
        if lock is not None:
            drop_collection(context.backend, name, lock.reacquire)


@shared_task(name="maintenance.trim")
def trim() -> None:
    """Trim the caches of vectors to their bounds, and delete old records."""
    context = current()
    settings = context.settings
    with alone(context.broker, "trim") as lock:
        if lock is not None:
            ledger = context.ledger
            ledger.vectors.trim(settings.embedder.cache_rows)
            ledger.token_vectors.trim(settings.rerank.cache_rows)
            now = time.time()
            ledger.model_usage.trim(now - COSTS_DAYS * DAY_SECONDS)
            ledger.key_usage.trim(now - COSTS_DAYS * DAY_SECONDS)
            ledger.audit_log.trim(now - settings.audit.keep_days * DAY_SECONDS)
            before = now - settings.maintenance.keep_days * DAY_SECONDS
            ledger.events.trim(before)
            ledger.webhooks.trim(before)
            ledger.batches.trim(before)


@shared_task(name="maintenance.empty_logs")
def empty_sqlite_logs() -> None:
    """Empty the write-ahead logs of SQLite files on this machine that nobody writes to now."""
    empty_logs(current().settings, quiet_seconds=QUIET_SECONDS)


@shared_task(name="maintenance.maintain")
def maintain() -> None:
    """Let every store do its deferred maintenance, such as refitting."""
    context = current()
    with alone(context.broker, "maintain", MAINTAIN_SECONDS) as lock:
        for kind, store in context.backend.stores().items() if lock is not None else ():
            try:
                store.maintain()
            except CallslipError as error:
                log.warning("maintenance of %s put off: %s", kind, error.detail)


def send_removal(context: Context, document_id: str) -> None:
    """Queue the removal of a deleted document.

    Without a broker, and with a local context, the workers' sweep removes the document.
    """
    _send(context, remove, document_id)


def send_drop(context: Context, name: str) -> None:
    """Queue the removal of a deleted collection.

    Without a broker, and with a local context, the workers' sweep removes the collection.
    """
    _send(context, drop, name)


def _send(context: Context, task: Task, name: str) -> None:
    if context.local:
        return
    try:
        task.apply_async((name,), queue=MAINTENANCE)
    except OperationalError as error:
        log.warning("the broker does not answer, the sweep will do %s: %s", task.name, error)
