"""Tasks with which ingest workers sync sources that are due, in slices."""

import logging
from functools import partial

from celery import shared_task
from kombu.exceptions import OperationalError

from callslip.errors import InternalError, LeaseLost, PermanentError
from callslip.ingestion.sources import Crawl, open_origin, sync
from callslip.tasks import ingest, maintenance
from callslip.tasks.composition import Context, current
from callslip.tasks.queues import INGEST

log = logging.getLogger(__name__)

LOOK_SECONDS = 5.0
"""Seconds between two checks for sources that are due."""


@shared_task(name="maintenance.look_at_sources")
def look_at_sources() -> None:
    """Queue every source that is due. A source that is queued twice runs once, under its lease."""
    for source_id in current().ledger.sources.due():
        _send(source_id)


@shared_task(name="ingest.sync_source")
def sync_source(source_id: str) -> None:
    """Run a slice of a source's run; the next slice is queued behind the documents of this one."""
    context = current()
    settings, ledger = context.settings, context.ledger
    lease_seconds = settings.ingest.lease_seconds
    run = ledger.source_runs.claim(source_id, lease_seconds=lease_seconds)
    if run is None:
        return
    try:
        origin = open_origin(run.source.url, settings)
    except PermanentError as error:
        ledger.source_runs.end(run, error)
        return
    try:
        with ledger.source_runs.keeper(run) as keeper:
            crawl = Crawl(
                ledger=ledger,
                blobs=context.blobs,
                run=run,
                origin=origin,
                most_mb=settings.api.max_upload_mb,
                slice_seconds=settings.sources.slice_seconds,
                room=partial(_room, context, run.source.collection, run.source.tenant),
                sent=partial(ingest.send_next, context),
                removed=partial(maintenance.send_removal, context),
                keeper=keeper,
            )
            progress = sync(crawl)
    except LeaseLost as error:
        log.info("stopped looking at a source: %s", error)
        return
    except Exception as error:  # a bug of Callslip would recur at every check
        log.error("source %s: %s", source_id, type(error).__name__, exc_info=True)
        ledger.source_runs.end(run, InternalError(f"unexpected {type(error).__name__}"))
        return
    finally:
        origin.close()
    if progress == "more":
        _send(source_id)


def _room(context: Context, collection: str, tenant: str) -> None:
    """Raise BacklogFull if too many documents wait, as the API does."""
    ingest.check_backlog(context)
    ingest.check_backlog_of(context, collection, tenant)


def _send(source_id: str) -> None:
    try:
        sync_source.apply_async((source_id,), queue=INGEST)
    except OperationalError as error:
        log.warning("the broker does not answer, source %s waits: %s", source_id, error)
