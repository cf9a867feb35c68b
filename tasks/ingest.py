"""The steps of a document as queued work, chained: each message carries ids, never content.

What is sent, and when, is the ledger's to say (stores/ledger/turns.py): `send_next` asks it
whenever something came or went, so that a document on an idle machine waits for nothing.
"""

import logging

from celery import chain, shared_task
from celery.exceptions import Ignore
from kombu.exceptions import OperationalError

from callslip.errors import BacklogFull, CallslipError
from config import get_settings
from ingestion.pipeline import run_step
from stores.ledger import STEPS, Step, lane_of
from tasks.process import ledger, processes, workshop
from tasks.queues import BY_STEP, INGEST

log = logging.getLogger(__name__)


def _step(step: Step, document_id: str, version: int) -> None:
    stopped = run_step(workshop(), step, document_id, version) == "stop"
    if stopped or step == STEPS[-1]:
        send_next(document_id)
    if stopped:
        raise Ignore  # the rest of the chain is another worker's, or nobody's


@shared_task(name="ingest.extract")
def extract(document_id: str, version: int) -> None:
    """Bytes to text; the files within the file go their own way."""
    _step("extract", document_id, version)
    send_next(document_id)


@shared_task(name="ingest.sectionize")
def sectionize(document_id: str, version: int) -> None:
    """Text to sections."""
    _step("sectionize", document_id, version)


@shared_task(name="ingest.chunk")
def chunk(document_id: str, version: int) -> None:
    """Sections to chunks."""
    _step("chunk", document_id, version)


@shared_task(name="ingest.enrich")
def enrich(document_id: str, version: int) -> None:
    """Language and keyword terms of each chunk."""
    _step("enrich", document_id, version)


@shared_task(name="ingest.embed")
def embed(document_id: str, version: int) -> None:
    """A vector for each chunk."""
    _step("embed", document_id, version)


@shared_task(name="ingest.upsert")
def upsert(document_id: str, version: int) -> None:
    """Everything into the store, and live."""
    _step("upsert", document_id, version)


_TASKS = {
    "extract": extract,
    "sectionize": sectionize,
    "chunk": chunk,
    "enrich": enrich,
    "embed": embed,
    "upsert": upsert,
}


def window() -> int:
    """How many documents are sent at a time: enough that no process waits for one."""
    settings = get_settings().ingest
    return settings.in_flight or 2 * (processes(INGEST) or settings.concurrency)


def check_backlog() -> None:
    """Take no more while too many wait: BacklogFull."""
    _check("ingest.max_backlog", get_settings().ingest.max_backlog)


def check_backlog_of(collection: str, tenant: str) -> None:
    """Take no more of a tenant while too many of its own wait: BacklogFull."""
    most = get_settings().ingest.max_backlog_per_tenant
    _check("ingest.max_backlog_per_tenant", most, lane_of(collection, tenant))


def _check(setting: str, most: int, lane: str | None = None) -> None:
    if ledger().turns.backlog(most, lane=lane) >= most:
        raise BacklogFull(f"{most} documents are waiting, as many as {setting} allows")


def send_next(document_id: str) -> None:
    """Queue what is next now that something of this document came or went; the sweep does else."""
    try:
        for item in ledger().turns.take(window(), document_id=document_id):
            send(item.document_id, item.version, item.step)
    except CallslipError as error:
        log.warning("the sweep will send what is next: %s", error.detail)


def send(document_id: str, version: int, first: Step = "extract") -> bool:
    """Queue a version's steps from `first` on; false where the broker does not answer.

    A message that is not sent is no loss: the ledger has the version, the sweep sends it.
    """
    steps = STEPS[STEPS.index(first) :]
    messages = [_TASKS[s].si(document_id, version).set(queue=BY_STEP[s]) for s in steps]
    try:
        chain(*messages).apply_async()
    except OperationalError as error:
        log.warning("the broker does not answer, the sweep will send %s: %s", document_id, error)
        return False
    return True
