"""What the ledger says, as the desk tells it."""

import time
from collections.abc import Sequence

from api import messages
from stores.ledger import (
    BatchItem,
    BatchReport,
    DeadLetter,
    Delivery,
    DocumentRecord,
    Failure,
    PastVersion,
    StepRecord,
    Webhook,
)


def failure(found: Failure | None) -> messages.FailureMessage | None:
    """Why something failed, with its title."""
    if found is None:
        return None
    return messages.FailureMessage(title=found.title, **found.__dict__)


def step(record: StepRecord) -> messages.StepMessage:
    """A step; a running one's seconds are those until now."""
    seconds = None
    if record.started_at is not None and record.state != "pending":
        seconds = round((record.finished_at or time.time()) - record.started_at, 3)
    resting = None if record.retry_at is None else round(max(0.0, record.retry_at - time.time()), 1)
    return messages.StepMessage(
        step=record.step,
        state=record.state,
        attempts=record.attempts,
        crashes=record.crashes,
        seconds=seconds,
        worker=record.worker,
        counts=record.counts,
        retry_in_seconds=resting,
        error=failure(record.failure),
    )


def document(record: DocumentRecord) -> messages.Document:
    """A document with the steps of its newest version."""
    newest = record.newest
    return messages.Document(
        document_id=record.document_id,
        collection=record.collection,
        tenant=record.tenant,
        name=record.name,
        parent=record.parent_id,
        title=newest.title or newest.filename,
        filename=newest.filename,
        size=newest.size,
        sha256=newest.sha256,
        version=newest.version,
        live_version=record.live_version,
        state=record.state,
        created_at=record.created_at,
        submitted_at=newest.created_at,
        finished_at=newest.finished_at,
        properties=newest.properties,
        steps=[step(s) for s in record.steps],
        error=failure(newest.failure),
        receipt=record.receipt if record.removed_at else None,
    )


def version(found: PastVersion) -> messages.VersionMessage:
    """One version in a document's history."""
    record = found.record
    return messages.VersionMessage(
        version=record.version,
        state="live" if found.live else record.state,
        submitted_at=record.created_at,
        finished_at=record.finished_at,
        sha256=record.sha256,
        size=record.size,
        filename=record.filename,
        title=record.title or record.filename,
        properties=record.properties,
        counts={str(step): counts for step, counts in found.counts.items()},
        superseded_by=None if found.live else record.superseded_by,
        restores=record.restores,
        error=failure(record.failure),
    )


def dead_letter(found: DeadLetter) -> messages.DeadLetter:
    """A document that failed for good."""
    told = found.failure
    return messages.DeadLetter(
        document_id=found.document_id,
        version=found.version,
        collection=found.collection,
        tenant=found.tenant,
        name=found.name,
        live_version=found.live_version,
        step=told.step,
        attempts=found.attempts,
        crashes=found.crashes,
        submitted_at=found.submitted_at,
        failed_at=found.failed_at,
        error=messages.FailureMessage(title=told.title, **told.__dict__),
    )


def batch_item(item: BatchItem) -> messages.BatchDocument:
    """A submission of a batch."""
    return messages.BatchDocument.model_validate(
        {
            "document_id": item.document_id,
            "version": item.version,
            "collection": item.collection,
            "name": item.name,
            "state": item.state,
            "unchanged": not item.fresh,
            "error": failure(item.failure),
        }
    )


def batch(report: BatchReport, failed: Sequence[BatchItem] = ()) -> messages.Batch:
    """How far a batch is, with the first of what failed; numbers as exact as they are."""
    rounded = {
        name: None if value is None else round(value, 1)
        for name, value in report.__dict__.items()
        if name in ("seconds", "documents_per_minute", "chunks_per_minute", "seconds_left")
    }
    failures = [batch_item(item) for item in failed]
    return messages.Batch.model_validate(report.__dict__ | rounded | {"failures": failures})


def webhook(hook: Webhook) -> messages.Webhook:
    """A webhook without its secret."""
    return messages.Webhook(
        webhook_id=hook.webhook_id,
        url=hook.url,
        collection=hook.collection,
        events=list(hook.kinds),
        created_at=hook.created_at,
        stopped_at=hook.stopped_at,
    )


def delivery(found: Delivery) -> messages.Delivery:
    """A delivery without what was sent."""
    about = {"type": found.body["type"], "document_id": found.body["data"]["document_id"]}
    return messages.Delivery.model_validate(found.__dict__ | about)
