"""Converts records of the ledger to response messages of the API."""

import time
from collections.abc import Sequence

from callslip.api.messages import documents
from callslip.stores.ledger import (
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
from callslip.vocabulary import ShownVersionState


def failure(record: Failure | None) -> documents.FailureMessage | None:
    """Convert the reason of a failure; add its title."""
    if record is None:
        return None
    return documents.FailureMessage(title=record.title, **record.__dict__)


def step(record: StepRecord) -> documents.StepMessage:
    """Convert a step; the seconds of a running step count until now."""
    seconds = None
    if record.started_at is not None and record.state != "pending":
        seconds = round((record.finished_at or time.time()) - record.started_at, 3)
    resting = None if record.retry_at is None else round(max(0.0, record.retry_at - time.time()), 1)
    return documents.StepMessage(
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


def live_version(record: DocumentRecord) -> int | None:
    """The version that searches see: none of a deleted document, whose data wait for removal."""
    return None if record.deleted_at is not None else record.live_version


def document(record: DocumentRecord) -> documents.Document:
    """Convert a document, with the steps of its newest version."""
    newest = record.newest
    return documents.Document(
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
        live_version=live_version(record),
        state=record.state,
        created_at=record.created_at,
        submitted_at=newest.created_at,
        finished_at=newest.finished_at,
        properties=newest.properties,
        url=newest.url or None,
        language=newest.language or None,
        steps=[step(s) for s in record.steps],
        warnings=[warning for s in record.steps for warning in s.warnings],
        error=failure(newest.failure),
        readers=None if record.readers is None else list(record.readers),
        etag=record.etag,
        receipt=record.receipt if record.removed_at else None,
    )


def _state(past: PastVersion) -> ShownVersionState:
    """The state of a version: a deleted document has no live one, whatever its row still has."""
    if past.live:
        return "live"
    return "deleted" if past.record.state == "live" else past.record.state


def version(past: PastVersion) -> documents.VersionMessage:
    """Convert one version in a document's history."""
    record = past.record
    return documents.VersionMessage(
        version=record.version,
        state=_state(past),
        origin=past.origin,
        submitted_at=record.created_at,
        finished_at=record.finished_at,
        sha256=record.sha256,
        size=record.size,
        filename=record.filename,
        title=record.title or record.filename,
        properties=record.properties,
        url=record.url or None,
        language=record.language or None,
        counts={str(step): counts for step, counts in past.counts.items()},
        warnings=list(past.warnings),
        superseded_by=None if past.live else record.superseded_by,
        restores=record.restores,
        edited=None if record.edited is None else list(record.edited),
        corrections_added=past.corrections_added or None,
        chunking=record.chunking,
        error=failure(record.failure),
    )


def dead_letter(letter: DeadLetter) -> documents.DeadLetter:
    """Convert a document that failed for good."""
    cause = letter.failure
    return documents.DeadLetter(
        document_id=letter.document_id,
        version=letter.version,
        collection=letter.collection,
        tenant=letter.tenant,
        name=letter.name,
        live_version=letter.live_version,
        step=cause.step,
        attempts=letter.attempts,
        crashes=letter.crashes,
        submitted_at=letter.submitted_at,
        failed_at=letter.failed_at,
        error=documents.FailureMessage(title=cause.title, **cause.__dict__),
    )


def batch_item(item: BatchItem) -> documents.BatchDocument:
    """Convert one submission of a batch."""
    return documents.BatchDocument.model_validate(
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


def batch(report: BatchReport, failed: Sequence[BatchItem] = ()) -> documents.Batch:
    """Convert the progress of a batch, with its first failures; round seconds and rates to 0.1."""
    rounded = {
        name: None if value is None else round(value, 1)
        for name, value in report.__dict__.items()
        if name in ("seconds", "documents_per_minute", "chunks_per_minute", "seconds_left")
    }
    failures = [batch_item(item) for item in failed]
    return documents.Batch.model_validate(report.__dict__ | rounded | {"failures": failures})


def webhook(hook: Webhook) -> documents.Webhook:
    """Convert a webhook, without its secret."""
    return documents.Webhook(
        webhook_id=hook.webhook_id,
        url=hook.url,
        collection=hook.collection,
        events=list(hook.kinds),
        created_at=hook.created_at,
        stopped_at=hook.stopped_at,
    )


def delivery(record: Delivery) -> documents.Delivery:
    """Convert a delivery, without the body of its request."""
    about = {"type": record.body["type"], "document_id": record.body["data"]["document_id"]}
    return documents.Delivery.model_validate(record.__dict__ | about)
