"""The ingestion steps as a chain of Celery tasks, whose messages have ids and never content.

The ledger's fair queue (stores/ledger/base/fair_queue.py) decides which versions are sent and when.
`send_next` reads the fair queue whenever a document was submitted, finished or deleted, so that no
document waits on an idle machine.
"""

import logging
import time
from collections.abc import Sequence
from functools import partial
from itertools import groupby
from typing import Any

from celery import chain, shared_task
from celery.exceptions import Ignore
from kombu.exceptions import OperationalError

from callslip import logs
from callslip.errors import CallslipError, DiskFull
from callslip.ingestion.pipeline import StepReport, run_steps
from callslip.stores.disk import STEPS_SHARE, check_space
from callslip.stores.ledger import STEPS, Dispatch, Step, tenant_queue_of
from callslip.tasks import document_traces
from callslip.tasks.composition import Context, current
from callslip.tasks.queues import BY_STEP, INGEST
from callslip.tasks.shared import metering

log = logging.getLogger(__name__)


Versions = list[tuple[str, int]]
"""The document ids and versions of a message."""


def _step(step: Step, versions: Versions) -> None:
    context = current()
    first = versions[0][0]
    try:
        check_space(context.settings, STEPS_SHARE)
    except DiskFull as error:
        log.warning("%s of %s waits, the sweep will send it: %s", step, first, error.detail)
        raise Ignore from error
    each = [(document_id, version) for document_id, version in versions]
    stopped = run_steps(context.steps, step, each, partial(_report, context)) == "stop"
    if stopped or step == STEPS[-1]:
        _send_next(context, first)
    if stopped:
        raise Ignore  # another worker runs the rest of the chain, or none does


def _report(context: Context, ended: StepReport) -> None:
    """Log, count and trace how an attempt of a step ended, and the document if that is its end."""
    claim, meter = ended.claim, context.meter
    reason = None if ended.error is None else ended.error.slug
    ids: dict[str, Any] = {
        "document_id": claim.document_id,
        "version": claim.version,
        "collection": claim.record.collection,
        "step": claim.step,
    }
    logs.event(
        log,
        "step",
        {"done": logging.INFO, "dropped": logging.INFO}.get(ended.outcome, logging.WARNING),
        error=ended.cause,
        **ids,
        attempt=claim.token,
        outcome=ended.outcome,
        reason=reason,
        ms=logs.milliseconds(ended.seconds),
        retry_in_seconds=None if ended.wait is None else round(ended.wait, 1),
    )
    meter.add(metering.named(metering.STEPS, claim.step, ended.outcome, reason or ""))
    meter.took(metering.named(metering.STEP_TIME, claim.step), ended.seconds)
    if context.spans is not None:
        context.spans.annotate({f"callslip.{key}": value for key, value in ids.items()})
        context.spans.annotate({"callslip.outcome": ended.outcome})
    live = ended.outcome == "done" and claim.step == STEPS[-1]
    if not live and ended.outcome != "failed":
        return
    outcome, seconds = "live" if live else "failed", time.time() - claim.record.created_at
    logs.event(
        log,
        "document",
        logging.INFO if live else logging.ERROR,
        **ids,
        outcome=outcome,
        reason=reason,
        seconds=round(seconds, 3),
        bytes=claim.record.size,
    )
    meter.add(metering.named(metering.DOCUMENTS, outcome, reason or ""))
    meter.took(metering.DOCUMENT_TIME, max(0.0, seconds))
    document_traces.forget(context, claim.document_id)


@shared_task(name="ingest.extract")
def extract(versions: Versions) -> None:
    """Extract the text of files; files inside a file become child documents."""
    _step("extract", versions)
    _send_next(current(), versions[0][0])


@shared_task(name="ingest.sectionize")
def sectionize(versions: Versions) -> None:
    """Divide the text into sections."""
    _step("sectionize", versions)


@shared_task(name="ingest.chunk")
def chunk(versions: Versions) -> None:
    """Cut the sections into chunks."""
    _step("chunk", versions)


@shared_task(name="ingest.enrich")
def enrich(versions: Versions) -> None:
    """Add language and keyword terms to each chunk."""
    _step("enrich", versions)


@shared_task(name="ingest.embed")
def embed(versions: Versions) -> None:
    """Make a vector for each chunk."""
    _step("embed", versions)


@shared_task(name="ingest.upsert")
def upsert(versions: Versions) -> None:
    """Write the chunks into the store, and make the version live."""
    _step("upsert", versions)


_TASKS = {
    "extract": extract,
    "sectionize": sectionize,
    "chunk": chunk,
    "enrich": enrich,
    "embed": embed,
    "upsert": upsert,
}


def window(context: Context) -> int:
    """The number of messages to have sent at a time: enough that no process waits for one."""
    settings = context.settings.ingest
    return settings.in_flight or 2 * (context.process_counts.of(INGEST) or settings.concurrency)


def check_backlog(context: Context) -> None:
    """Raise BacklogFull if too many documents wait, DiskFull if the disk has too little room."""
    check_space(context.settings)
    context.backlog.check()


def check_backlog_of(context: Context, collection: str, tenant: str) -> None:
    """Raise BacklogFull if too many documents of this tenant wait."""
    context.backlog.check_of(tenant_queue_of(collection, tenant))


def send_next(context: Context, document_id: str) -> None:
    """Send the next versions of the fair queue, after a document was submitted or deleted.

    The next sweep sends the versions that cannot be sent now.
    """
    document_traces.remember(context, document_id)
    _send_next(context, document_id)


def _send_next(context: Context, document_id: str) -> None:
    try:
        send_all(context, context.ledger.fair_queue.take(window(context), document_id=document_id))
    except CallslipError as error:
        log.warning("the sweep will send what is next: %s", error.detail)


def send_all(context: Context, dispatches: Sequence[Dispatch]) -> None:
    """Queue the steps of versions; those with the same message travel together.

    While a collector receives traces, each document travels alone, because a trace follows one.
    """
    for _, group in groupby(dispatches, key=lambda each: each.message or each):
        together = list(group)
        alone = context.spans is not None
        for versions in ([each] for each in together) if alone else (together,):
            with document_traces.of(context, versions[0].document_id):
                _send([(v.document_id, v.version) for v in versions], versions[0].step)


def _send(versions: Versions, first: Step) -> None:
    """Queue the steps of versions from `first` on.

    If the broker does not answer, nothing is lost: the ledger has them, and the sweep sends them.
    """
    steps = STEPS[STEPS.index(first) :]
    messages = [_TASKS[s].si(versions).set(queue=BY_STEP[s]) for s in steps]
    try:
        chain(*messages).apply_async()
    except OperationalError as error:
        which = ", ".join(document_id for document_id, _ in versions)
        log.warning("the broker does not answer, the sweep will send %s: %s", which, error)
