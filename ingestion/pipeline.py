"""One step of one document: claim it, do it, record it. Knows no queue.

A step's output is an artifact named by the hash of its input and of the settings that matter to it;
where that artifact is there already, nothing is computed again.
"""

import logging
import os
import random
import socket
import traceback
from collections.abc import Callable
from typing import Any, Literal

from callslip.errors import InternalError, LeaseLost, PermanentError, TransientError
from ingestion import artifacts, children, steps
from ingestion.artifacts import Artifact
from ingestion.steps import Work
from ingestion.workshop import Workshop
from stores.ledger import Claim, Refusal, Step

log = logging.getLogger(__name__)

MAX_WAIT_SECONDS = 60.0
"""Longest wait between two tries of a step."""

MOST_DOUBLINGS = 30
"""Of the wait; a step's attempts are never reset, and 2.0**1024 is no number any more."""

_MAKERS: dict[Step, tuple[Callable[[Work], Any], Artifact[Any]]] = {
    "extract": (steps.extract_text, artifacts.EXTRACTED),
    "sectionize": (steps.find_sections, artifacts.SECTIONS),
    "chunk": (steps.cut_chunks, artifacts.CHUNKS),
    "enrich": (steps.enrich_chunks, artifacts.ENRICHED),
    "embed": (steps.embed_chunks, artifacts.VECTORS),
}

Next = Literal["go on", "stop"]


def run_step(shop: Workshop, step: Step, document_id: str, version: int) -> Next:
    """Do one step of a version if it is ours to do; say whether the next step may follow."""
    settings = shop.settings.ingest
    claim = shop.ledger.leases.claim(
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
            _do(shop, claim)
        except TransientError as error:
            _put_back(shop, claim, error)
            return "stop"
        except PermanentError as error:
            log.info("%s of %s v%d failed: %s", step, document_id, version, error.slug)
            shop.ledger.leases.fail(claim, error)
            return "stop"
        except Exception as error:
            _unexpected(shop, claim, error)
            return "stop"
    except LeaseLost as error:
        log.info("dropped a result: %s", error)
        shop.ledger.leases.drop(claim)
        return "stop"
    return "go on"


def _do(shop: Workshop, claim: Claim) -> None:
    with shop.ledger.leases.kept(claim) as keeper:
        work = Work(shop, claim, keeper)
        if claim.step == "upsert":
            stored = steps.upsert_chunks(work)
            shop.ledger.leases.go_live(claim, stored.chunk_ids, stored.counts)
            return
        make, kind = _MAKERS[claim.step]
        name = steps.name_of(work)
        known = shop.blobs.exists(claim.document_id, name)
        output = kind.load(shop.blobs.read(claim.document_id, name)) if known else None
        if output is None or (claim.step == "extract" and output.attachments):
            output = make(work)  # an artifact does not hold the files within a file
            keeper.check()  # nothing is written behind the back of a deletion
            shop.blobs.write(claim.document_id, name, kind.dump(output))
        if claim.step == "extract":
            children.bring_in(work, output)
        shop.ledger.leases.finish(claim, name, kind.counts(output) | work.counts)


def _put_back(shop: Workshop, claim: Claim, error: TransientError) -> None:
    if isinstance(error, LeaseLost):
        raise error
    settings = shop.settings.ingest
    doublings = min(claim.token - 1, MOST_DOUBLINGS)
    wait = min(settings.retry_base_seconds * 2.0**doublings, MAX_WAIT_SECONDS)
    wait *= random.uniform(0.75, 1.25)  # noqa: S311 - jitter, so that retries do not come at once
    log.warning(
        "%s of %s put back for %.1f s: %s", claim.step, claim.document_id, wait, error.detail
    )
    shop.ledger.leases.release(claim, error, wait=wait, give_up=settings.retry_for_seconds)


def _unexpected(shop: Workshop, claim: Claim, error: Exception) -> None:
    """A mistake of ours: name its place, never its message, which may hold text of a document."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{os.path.basename(frames[-1].filename)}:{frames[-1].lineno}"  # noqa: PTH119
    log.error(
        "%s of %s: %s\n%s",
        claim.step,
        claim.document_id,
        type(error).__name__,
        "".join(traceback.format_list(frames)),
    )
    shop.ledger.leases.fail(claim, InternalError(f"{type(error).__name__} at {place}"))
