"""Runs one step of one document: claim the step, run it, record the result. Independent of Celery.

The output of a step is an artifact. Its name is the hash of the step's input and of the settings
that affect the step. If the artifact already exists, it is not computed again.
"""

import math
import os
import random
import socket
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from callslip.errors import (
    CallslipError,
    DiskFull,
    InternalError,
    LeaseLost,
    PermanentError,
    StoreDown,
    TransientError,
)
from callslip.ingestion import artifacts, attachments
from callslip.ingestion.artifacts import Artifact
from callslip.ingestion.context import StepContext
from callslip.ingestion.steps.text import cut_chunks, enrich_chunks, extract_text, find_sections
from callslip.ingestion.steps.upsert import upsert_chunks
from callslip.ingestion.steps.vectors import embed_chunks
from callslip.ingestion.steps.work import Work, name_of
from callslip.stores.disk import NO_ROOM, is_disk_full
from callslip.stores.ledger import Claim, Refusal, Step

MAX_WAIT_SECONDS = 60.0
"""The longest wait between two attempts of a step."""

MAX_LASTING_WAIT_SECONDS = 10.0
"""The longest wait if the error is a store's or a disk's, which is soon well again.

The wait doubles with each attempt that the step ever had, repairs included: without this limit a
document that was repaired often would wait a minute for each fault that lasts a second.
"""

MOST_DOUBLINGS = 30
"""The maximum number of doublings of the wait. A step's attempts are never reset, and 2.0**1024
overflows."""

MOST_WARNINGS = 100
"""The maximum number of warnings that are recorded for a step."""

_MAKERS: dict[Step, tuple[Callable[[Work], Any], Artifact[Any]]] = {
    "extract": (extract_text, artifacts.EXTRACTED),
    "sectionize": (find_sections, artifacts.SECTIONS),
    "chunk": (cut_chunks, artifacts.CHUNKS),
    "enrich": (enrich_chunks, artifacts.ENRICHED),
    "embed": (embed_chunks, artifacts.VECTORS),
}

Next = Literal["go on", "stop"]


@dataclass(frozen=True)
class StepReport:
    """How an attempt of a step ended.

    done: the step is finished; retry: a passing error, with the `wait` in seconds; failed: the
    version has failed for good; dropped: another worker has the step, or the version is gone.
    `error` is None if the step is done.
    """

    claim: Claim
    outcome: Literal["done", "retry", "failed", "dropped"]
    seconds: float
    error: CallslipError | None = None
    wait: float | None = None
    cause: Exception | None = None


def run_step(
    context: StepContext,
    step: Step,
    document_id: str,
    version: int,
    report: Callable[[StepReport], None] = lambda report: None,
) -> Next:
    """Run one step of a version if this worker can claim it, and report how that ended.

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
    ended = _attempt(context, claim)
    report(ended)
    return "go on" if ended.outcome == "done" else "stop"


def _attempt(context: StepContext, claim: Claim) -> StepReport:
    started = time.perf_counter()

    def took() -> float:
        return time.perf_counter() - started

    leases = context.ledger.leases
    try:
        try:
            _do(context, claim)
        except LeaseLost:
            raise
        except TransientError as error:
            return _put_back(context, claim, error, took())
        except PermanentError as error:
            leases.fail(claim, error)
            return StepReport(claim, "failed", took(), error)
        except Exception as error:
            if is_disk_full(error):
                return _put_back(context, claim, DiskFull(NO_ROOM), took())
            internal = InternalError(f"{type(error).__name__} at {_location(error)}")
            leases.fail(claim, internal)
            return StepReport(claim, "failed", took(), internal, cause=error)
    except LeaseLost as error:
        leases.drop(claim)
        return StepReport(claim, "dropped", took(), error)
    return StepReport(claim, "done", took())


def _do(context: StepContext, claim: Claim) -> None:
    with context.ledger.leases.keeper(claim) as keeper:
        work = Work(context, claim, keeper)
        if claim.step == "upsert":
            stored = upsert_chunks(work)
            context.ledger.leases.go_live(claim, stored.chunk_ids, stored.counts, stored.audience)
            return
        make, kind = _MAKERS[claim.step]
        name = name_of(work)
        known = context.blobs.exists(claim.document_id, name)
        output = kind.load(context.blobs.read(claim.document_id, name)) if known else None
        if output is None or (claim.step == "extract" and output.attachments):
            output = make(work)  # an artifact has no attachments
            keeper.check()  # write nothing after a deletion of the document
            context.blobs.write(claim.document_id, name, kind.dump(output))
        if claim.step == "extract":
            attachments.bring_in(work, output)
            if claim.record.corrections:
                left_out = [each.left_out for each in output.corrections]
                context.ledger.corrections.settle(claim, left_out)
        counts = kind.counts(output) | work.counts
        context.ledger.leases.finish(claim, name, counts, kind.warnings(output)[:MOST_WARNINGS])


def _put_back(
    context: StepContext, claim: Claim, error: TransientError, seconds: float
) -> StepReport:
    """Put the step back until its next attempt; a step that failed for too long fails for good."""
    lasting = isinstance(error, StoreDown | DiskFull)
    wait = _wait(context, claim, MAX_LASTING_WAIT_SECONDS if lasting else MAX_WAIT_SECONDS)
    # What Callslip itself needs comes back.
    give_up = math.inf if lasting else context.settings.ingest.retry_for_seconds
    if context.ledger.leases.release(claim, error, wait=wait, give_up=give_up):
        return StepReport(claim, "failed", seconds, error)
    return StepReport(claim, "retry", seconds, error, wait)


def _wait(context: StepContext, claim: Claim, most: float) -> float:
    """Seconds until the next attempt of a step, about `most` at most."""
    doublings = min(claim.token - 1, MOST_DOUBLINGS)
    wait = min(context.settings.ingest.retry_base_seconds * 2.0**doublings, most)
    return wait * random.uniform(0.75, 1.25)  # noqa: S311 - jitter, so that retries do not coincide


def _location(error: Exception) -> str:
    """The line of an unexpected error. Its message may contain text of a document."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{os.path.basename(frame.filename)}:{frame.lineno}"  # noqa: PTH119
