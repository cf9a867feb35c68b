"""What the ledger says, as the desk tells it."""

import time

from api import messages
from stores.ledger import DeadLetter, DocumentRecord, Failure, PastVersion, StepRecord


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
