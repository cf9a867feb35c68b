"""Sources as queued work: looking at what is due, in slices, on the ingest workers."""

import logging
from functools import partial

from celery import shared_task
from kombu.exceptions import OperationalError

from callslip.errors import InternalError, LeaseLost, PermanentError
from config import get_settings
from ingestion.sources import Crawl, open_place, sync
from tasks import ingest, maintenance
from tasks.process import blobs, ledger
from tasks.queues import INGEST

log = logging.getLogger(__name__)

LOOK_SECONDS = 5.0
"""How often it is looked which sources are due."""


@shared_task(name="maintenance.look_at_sources")
def look_at_sources() -> None:
    """Send every source that is due. Sent twice it is still looked at once: its lease decides."""
    for source_id in ledger().sources.due():
        _send(source_id)


@shared_task(name="ingest.sync_source")
def sync_source(source_id: str) -> None:
    """Do a slice of a source's run; the next slice waits behind what this one brought in."""
    settings = get_settings()
    lease_seconds = settings.ingest.lease_seconds
    run = ledger().source_runs.claim(source_id, lease_seconds=lease_seconds)
    if run is None:
        return
    try:
        place = open_place(run.source.url, settings)
    except PermanentError as error:
        ledger().source_runs.end(run, error)
        return
    try:
        with ledger().source_runs.kept(run) as keeper:
            crawl = Crawl(
                ledger=ledger(),
                blobs=blobs(),
                run=run,
                place=place,
                most_mb=settings.api.max_upload_mb,
                slice_seconds=settings.sources.slice_seconds,
                room=partial(_room, run.source.collection, run.source.tenant),
                sent=ingest.send_next,
                removed=maintenance.send_removal,
                keeper=keeper,
            )
            progress = sync(crawl)
    except LeaseLost as error:
        log.info("stopped looking at a source: %s", error)
        return
    except Exception as error:  # a mistake of ours would come back with every look
        log.error("source %s: %s", source_id, type(error).__name__, exc_info=True)
        ledger().source_runs.end(run, InternalError(f"unexpected {type(error).__name__}"))
        return
    finally:
        place.close()
    if progress == "more":
        _send(source_id)


def _room(collection: str, tenant: str) -> None:
    """Fetch no more while too many documents wait, as the desk takes no more: Overloaded."""
    ingest.check_backlog()
    ingest.check_backlog_of(collection, tenant)


def _send(source_id: str) -> None:
    try:
        sync_source.apply_async((source_id,), queue=INGEST)
    except OperationalError as error:
        log.warning("the broker does not answer, source %s waits: %s", source_id, error)
