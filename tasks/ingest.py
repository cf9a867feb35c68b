"""The steps of a document as queued work, chained: each message carries ids, never content."""

import logging

from celery import chain, shared_task
from celery.exceptions import Ignore
from kombu.exceptions import OperationalError

from ingestion.pipeline import run_step
from stores.ledger import STEPS, Step
from tasks.process import ledger, workshop
from tasks.queues import BY_STEP

log = logging.getLogger(__name__)


def _step(step: Step, document_id: str, version: int) -> None:
    if run_step(workshop(), step, document_id, version) == "stop":
        raise Ignore  # the rest of the chain is another worker's, or nobody's


@shared_task(name="ingest.extract")
def extract(document_id: str, version: int) -> None:
    """Bytes to text; the files within the file go their own way."""
    _step("extract", document_id, version)
    for child_id, child_version in ledger().family.unsent(document_id):
        send(child_id, child_version)


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
