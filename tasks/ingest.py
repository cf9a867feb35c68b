"""The ingestion steps as a chain of Celery tasks, whose messages have ids and never content.

The ledger's fair queue (stores/ledger/base/fair_queue.py) decides which versions are sent and when.
`send_next` reads the fair queue whenever a document was submitted, finished or deleted, so that no
document waits on an idle machine.
"""

import logging

from celery import chain, shared_task
from celery.exceptions import Ignore
from kombu.exceptions import OperationalError

from callslip.errors import BacklogFull, CallslipError
from callslip.ingestion.pipeline import run_step
from callslip.stores.ledger import STEPS, Step, tenant_queue_of
from callslip.tasks.composition import Context, current
from callslip.tasks.queues import BY_STEP, INGEST

log = logging.getLogger(__name__)


def _step(step: Step, document_id: str, version: int) -> None:
    context = current()
    stopped = run_step(context.steps, step, document_id, version) == "stop"
    if stopped or step == STEPS[-1]:
        send_next(context, document_id)
    if stopped:
        raise Ignore  # another worker runs the rest of the chain, or none does


@shared_task(name="ingest.extract")
def extract(document_id: str, version: int) -> None:
    """Extract the text of a file; files inside the file become child documents."""
    _step("extract", document_id, version)
    send_next(current(), document_id)


@shared_task(name="ingest.sectionize")
def sectionize(document_id: str, version: int) -> None:
    """Divide the text into sections."""
    _step("sectionize", document_id, version)


@shared_task(name="ingest.chunk")
def chunk(document_id: str, version: int) -> None:
    """Cut the sections into chunks."""
    _step("chunk", document_id, version)


@shared_task(name="ingest.enrich")
def enrich(document_id: str, version: int) -> None:
    """Add language and keyword terms to each chunk."""
    _step("enrich", document_id, version)


@shared_task(name="ingest.embed")
def embed(document_id: str, version: int) -> None:
    """Make a vector for each chunk."""
    _step("embed", document_id, version)


@shared_task(name="ingest.upsert")
def upsert(document_id: str, version: int) -> None:
    """Write the chunks into the store, and make the version live."""
    _step("upsert", document_id, version)


_TASKS = {
    "extract": extract,
    "sectionize": sectionize,
    "chunk": chunk,
    "enrich": enrich,
    "embed": embed,
    "upsert": upsert,
}


def window(context: Context) -> int:
    """The number of documents to have sent at a time: enough that no process waits for one."""
    settings = context.settings.ingest
    return settings.in_flight or 2 * (context.process_counts.of(INGEST) or settings.concurrency)


def check_backlog(context: Context) -> None:
    """Raise BacklogFull if too many documents wait."""
    _check(context, "ingest.max_backlog", context.settings.ingest.max_backlog)


def check_backlog_of(context: Context, collection: str, tenant: str) -> None:
    """Raise BacklogFull if too many documents of this tenant wait."""
    most = context.settings.ingest.max_backlog_per_tenant
    _check(context, "ingest.max_backlog_per_tenant", most, tenant_queue_of(collection, tenant))


def _check(context: Context, setting: str, most: int, tenant_queue: str | None = None) -> None:
    if context.ledger.fair_queue.backlog(most, tenant_queue=tenant_queue) >= most:
        raise BacklogFull(f"{most} documents are waiting, as many as {setting} allows")


def send_next(context: Context, document_id: str) -> None:
    """Send the next versions of the fair queue, after a document was submitted, ended or deleted.

    The next sweep sends the versions that cannot be sent now.
    """
    try:
        for item in context.ledger.fair_queue.take(window(context), document_id=document_id):
            send(item.document_id, item.version, item.step)
    except CallslipError as error:
        log.warning("the sweep will send what is next: %s", error.detail)


def send(document_id: str, version: int, first: Step = "extract") -> bool:
    """Queue a version's steps from `first` on; return False if the broker does not answer.

    Then nothing is lost: the ledger has the version, and the sweep sends it.
    """
    steps = STEPS[STEPS.index(first) :]
    messages = [_TASKS[s].si(document_id, version).set(queue=BY_STEP[s]) for s in steps]
    try:
        chain(*messages).apply_async()
    except OperationalError as error:
        log.warning("the broker does not answer, the sweep will send %s: %s", document_id, error)
        return False
    return True
