"""Runs one step of one document: claim the step, run it, record the result. Independent of Celery.

The output of a step is an artifact. Its name is the hash of the step's input and of the settings
that affect the step. If the artifact already exists, it is not computed again.
"""

import logging
import os
import random
import socket
import traceback
from collections.abc import Callable
from typing import Any, Literal

from callslip.errors import InternalError, LeaseLost, PermanentError, TransientError
from callslip.ingestion import artifacts, attachments, steps
from callslip.ingestion.artifacts import Artifact
from callslip.ingestion.context import StepContext
from callslip.ingestion.steps import Work
from callslip.stores.ledger import Claim, Refusal, Step

log = logging.getLogger(__name__)

MAX_WAIT_SECONDS = 60.0
"""The longest wait between two attempts of a step."""

MOST_DOUBLINGS = 30
"""The maximum number of doublings of the wait. A step's attempts are never reset, and 2.0**1024
overflows."""

_MAKERS: dict[Step, tuple[Callable[[Work], Any], Artifact[Any]]] = {
    "extract": (steps.extract_text, artifacts.EXTRACTED),
    "sectionize": (steps.find_sections, artifacts.SECTIONS),
    "chunk": (steps.cut_chunks, artifacts.CHUNKS),
    "enrich": (steps.enrich_chunks, artifacts.ENRICHED),
    "embed": (steps.embed_chunks, artifacts.VECTORS),
}

Next = Literal["go on", "stop"]


def run_step(context: StepContext, step: Step, document_id: str, version: int) -> Next:
    """Run one step of a version if this worker can claim it.

    Returns "go on" if the next step may follow, else "stop".
    """
    settings = context.settings.ingest
    claim = context.ledger.leases.claim(
        document_id,
        version,
        step,
        worker=f"{socket.gethostname()}:{os.getpid()}",
        lease_seconds=settings.lease_seconds,
        max_crashes=settings.max_attempts,
    )
    if isinstance(claim, Refusal):
        return "go on" if claim.reason == "done" else "stop"
    try:
        try:
            _do(context, claim)
        except TransientError as error:
            _put_back(context, claim, error)
            return "stop"
        except PermanentError as error:
            log.info("%s of %s v%d failed: %s", step, document_id, version, error.slug)
            context.ledger.leases.fail(claim, error)
            return "stop"
        except Exception as error:
            _unexpected(context, claim, error)
            return "stop"
    except LeaseLost as error:
        log.info("dropped a result: %s", error)
        context.ledger.leases.drop(claim)
        return "stop"
    return "go on"


def _do(context: StepContext, claim: Claim) -> None:
    with context.ledger.leases.keeper(claim) as keeper:
        work = Work(context, claim, keeper)
        if claim.step == "upsert":
            stored = steps.upsert_chunks(work)
            context.ledger.leases.go_live(claim, stored.chunk_ids, stored.counts)
            return
        make, kind = _MAKERS[claim.step]
        name = steps.name_of(work)
        known = context.blobs.exists(claim.document_id, name)
        output = kind.load(context.blobs.read(claim.document_id, name)) if known else None
        if output is None or (claim.step == "extract" and output.attachments):
            output = make(work)  # an artifact has no attachments
            keeper.check()  # write nothing after a deletion of the document
            context.blobs.write(claim.document_id, name, kind.dump(output))
        if claim.step == "extract":
            attachments.bring_in(work, output)
        context.ledger.leases.finish(claim, name, kind.counts(output) | work.counts)


def _put_back(context: StepContext, claim: Claim, error: TransientError) -> None:
    if isinstance(error, LeaseLost):
        raise error
    settings = context.settings.ingest
    doublings = min(claim.token - 1, MOST_DOUBLINGS)
    wait = min(settings.retry_base_seconds * 2.0**doublings, MAX_WAIT_SECONDS)
    wait *= random.uniform(0.75, 1.25)  # noqa: S311 - jitter, so that retries do not come at once
    log.warning(
        "%s of %s put back for %.1f s: %s", claim.step, claim.document_id, wait, error.detail
    )
    context.ledger.leases.release(claim, error, wait=wait, give_up=settings.retry_for_seconds)


def _unexpected(context: StepContext, claim: Claim, error: Exception) -> None:
    """Record an unexpected error with its location.

    The message is not recorded, because it may contain text of a document.
    """
    frames = traceback.extract_tb(error.__traceback__)
    location = f"{os.path.basename(frames[-1].filename)}:{frames[-1].lineno}"  # noqa: PTH119
    log.error(
        "%s of %s: %s\n%s",
        claim.step,
        claim.document_id,
        type(error).__name__,
        "".join(traceback.format_list(frames)),
    )
    context.ledger.leases.fail(claim, InternalError(f"{type(error).__name__} at {location}"))
