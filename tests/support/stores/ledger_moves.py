"""What the API and the workers do with a ledger, in a word each, for tests."""

import hashlib
import math
import os
import uuid
from collections.abc import Iterable
from typing import Any

from callslip.stores.ledger import STEPS, Accepted, Claim, Ledger, Refusal, Step, Submission

LONG, OVER = 60.0, -1.0
"""Seconds of a lease that holds through a test, and of one that ran out before it began."""

POSTGRESQL = "CALLSLIP_TEST_POSTGRESQL_URL"
KINDS = ["sqlite", "postgresql"] if POSTGRESQL in os.environ else ["sqlite"]
"""The databases that every ledger test runs on."""


def submission(content: str = "one", name: str = "a.txt", **properties: Any) -> Submission:
    """A submission whose bytes are this content."""
    digest = hashlib.sha256(content.encode()).hexdigest()
    return Submission(name, name, "", digest, len(content), properties)


def submit(ledger: Ledger, content: str = "one", name: str = "a.txt") -> Accepted:
    """Submit a document to the collection `papers`, and send what waits."""
    accepted = ledger.documents.submit("papers", submission(content, name), uuid.uuid4().hex)
    ledger.fair_queue.take(math.inf, document_id=accepted.document_id)
    return accepted


def claim(
    ledger: Ledger,
    item: Accepted,
    step: Step = "extract",
    *,
    lease: float = LONG,
    max_crashes: int = 3,
) -> Claim | Refusal:
    """Try to claim a step of a submission."""
    return ledger.leases.claim(
        item.document_id,
        item.version,
        step,
        worker="tester",
        lease_seconds=lease,
        max_crashes=max_crashes,
    )


def taken(ledger: Ledger, item: Accepted, step: Step = "extract", *, lease: float = LONG) -> Claim:
    """Claim a step that must be free."""
    found = claim(ledger, item, step, lease=lease)
    assert isinstance(found, Claim), found
    return found


def work(ledger: Ledger, item: Accepted, upto: Step = "embed") -> None:
    """Do a version's steps up to and with this one."""
    for step in STEPS[: STEPS.index(upto) + 1]:
        found = claim(ledger, item, step)
        if isinstance(found, Claim):
            ledger.leases.finish(found, f"{step}-artifact", {"n": 1})


def store_chunks(ledger: Ledger, item: Accepted, chunk_ids: Iterable[str]) -> Claim:
    """Do everything but the last word of the last step; returns the claim to say it with."""
    work(ledger, item)
    upsert = taken(ledger, item, "upsert")
    ledger.chunks.expect(upsert, {chunk_id: f"hash of {chunk_id}" for chunk_id in chunk_ids})
    return upsert


def publish(
    ledger: Ledger, content: str, chunk_ids: Iterable[str], name: str = "a.txt"
) -> Accepted:
    """Submit this content and take it to live with these chunks."""
    item, ids = submit(ledger, content, name), list(chunk_ids)
    ledger.leases.go_live(store_chunks(ledger, item, ids), ids, {"chunks": len(ids)})
    return item
