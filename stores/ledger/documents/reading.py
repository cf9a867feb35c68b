"""Reads documents with their newest versions and the steps of those versions."""

import time
from collections.abc import Iterable
from typing import Any

from sqlalchemy import select

from callslip.stores.ledger.base import schema
from callslip.stores.ledger.base.database import Database
from callslip.stores.ledger.base.records import (
    STEPS,
    DocumentRecord,
    DocumentState,
    StepRecord,
    VersionRecord,
)
from callslip.stores.ledger.base.rows import step_record, version_record

_D, _V, _S = schema.documents.c, schema.versions.c, schema.steps.c


def read_documents(database: Database, document_ids: Iterable[str]) -> list[DocumentRecord]:
    """The documents with these ids, in this order, from one snapshot. Ignores unknown ids."""
    ids = list(document_ids)
    with database.snapshot() as connection:
        documents = connection.execute(
            select(schema.documents).where(_D.document_id.in_(ids))
        ).all()
        versions = connection.execute(
            versions_query().where(_V.document_id.in_(ids)).order_by(_V.version)
        ).all()
        newest = {row.document_id: version_record(row, row) for row in versions}
        rows = connection.execute(select(schema.steps).where(_S.document_id.in_(ids))).all()
    steps: dict[tuple[str, int], list[StepRecord]] = {}
    for row in rows:
        steps.setdefault((row.document_id, row.version), []).append(step_record(row))
    records = {}
    for row in documents:
        version = newest[row.document_id]
        mine = sorted(steps[row.document_id, version.version], key=lambda s: STEPS.index(s.step))
        records[row.document_id] = DocumentRecord(
            document_id=row.document_id,
            collection=row.collection,
            tenant=row.tenant,
            name=row.name,
            live_version=row.live_version,
            created_at=row.created_at,
            deleted_at=row.deleted_at,
            removed_at=row.removed_at,
            receipt=row.receipt,
            parent_id=row.parent_id,
            newest=version,
            steps=tuple(mine),
            state=_state(row.deleted_at, version, mine),
        )
    return [records[i] for i in ids if i in records]


def versions_query() -> Any:
    """Select versions, each with the collection, tenant and name of its document."""
    return select(schema.versions, _D.collection, _D.tenant, _D.name).join(
        schema.documents, _D.document_id == _V.document_id
    )


def _state(
    deleted_at: float | None, newest: VersionRecord, steps: Iterable[StepRecord]
) -> DocumentState:
    if deleted_at is not None:
        return "deleted"
    if newest.state == "failed":
        return "failed"
    if newest.state == "live":
        return "live"
    running = [s for s in steps if s.state == "running"]
    if not running:
        return "waiting"
    now = time.time()
    return "working" if any((s.lease_until or 0) > now for s in running) else "stalled"
