"""Converts rows of the ledger to records."""

from typing import Any

from sqlalchemy import Row

from callslip.stores.ledger.base import corrections
from callslip.stores.ledger.base.records import Failure, StepRecord, VersionRecord


def version_record(row: Row[Any], document: Row[Any]) -> VersionRecord:
    """A version from its row and its document's row, which may be the same joined row."""
    return VersionRecord(
        document_id=row.document_id,
        version=row.version,
        collection=document.collection,
        tenant=document.tenant,
        name=document.name,
        state=row.state,
        sha256=row.sha256,
        size=row.size,
        filename=row.filename,
        title=row.title,
        properties=row.properties,
        failure=Failure(**row.error) if row.error else None,
        created_at=row.created_at,
        finished_at=row.finished_at,
        priority=row.priority,
        previous_version=row.former,
        restores=row.restores,
        superseded_by=row.superseded_by,
        corrections=corrections.from_json(row.corrections),
        url=row.url,
        language=row.language,
        by_hand=tuple(row.by_hand or ()),
        edited=None if row.edited is None else tuple(row.edited),
        chunking=row.chunking,
    )


def step_record(row: Row[Any]) -> StepRecord:
    """A step from its row."""
    return StepRecord(
        step=row.step,
        state=row.state,
        attempts=row.attempts,
        crashes=row.crashes,
        worker=row.worker,
        lease_until=row.lease_until,
        retry_at=row.retry_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
        artifact=row.artifact,
        counts=row.counts or {},
        failure=Failure(**row.error) if row.error else None,
        warnings=tuple(row.warnings or ()),
    )
