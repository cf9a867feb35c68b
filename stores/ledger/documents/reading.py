"""Reads documents with their newest versions and the steps of those versions."""

import time
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any

from sqlalchemy import BindParameter, bindparam, exists, func, literal, select

from callslip.readers import Reader
from callslip.stores.ledger.base import schema
from callslip.stores.ledger.base.database import Database
from callslip.stores.ledger.base.readable import readable, readable_counts
from callslip.stores.ledger.base.records import (
    STEPS,
    DocumentRecord,
    DocumentState,
    StepRecord,
    VersionRecord,
)
from callslip.stores.ledger.base.rows import step_record, version_record
from callslip.stores.ledger.documents.readers import read_readers

_D, _V, _S = schema.documents.c, schema.versions.c, schema.steps.c


def versions_query() -> Any:
    """Select versions, each with the collection, tenant and name of its document."""
    return select(schema.versions, _D.collection, _D.tenant, _D.name).join(
        schema.documents, _D.document_id == _V.document_id
    )


# Statements that each request for a state needs are built once: building them costs more than
# running them.
_IDS: BindParameter[Any] = bindparam("ids", expanding=True)
_DOCUMENTS = select(schema.documents).where(_D.document_id.in_(_IDS))
_VERSIONS = versions_query().where(_V.document_id.in_(_IDS)).order_by(_V.version)
_STEPS = select(schema.steps).where(_S.document_id.in_(_IDS))
_NEWER = schema.versions.alias().c
_PRESENT = select(literal("live"), func.count()).where(_D.deleted_at.is_(None))
_NOT_LIVE = (
    select(_V.state, func.count())
    .join(schema.documents, _D.document_id == _V.document_id)
    .where(_V.state.in_(("queued", "failed")), _D.deleted_at.is_(None))
    .where(~exists().where(_NEWER.document_id == _V.document_id, _NEWER.version > _V.version))
    .group_by(_V.state)
)


def read_documents(
    database: Database, document_ids: Iterable[str], reader: Reader | None = None
) -> list[DocumentRecord]:
    """The documents with these ids, in this order, from one snapshot.

    Ignores unknown ids and, with `reader`, those of documents that it may not read.
    """
    ids = list(document_ids)
    named = {"ids": ids}
    with database.snapshot() as connection:
        documents = connection.execute(_DOCUMENTS.where(readable(reader)), named).all()
        versions = connection.execute(_VERSIONS, named).all()
        newest = {row.document_id: version_record(row, row) for row in versions}
        rows = connection.execute(_STEPS, named).all()
    readers = read_readers(database, (row.audience for row in documents))
    parents = _readable_ids(database, {row.parent_id for row in documents}, reader)
    steps: dict[tuple[str, int], list[StepRecord]] = {}
    for row in rows:
        steps.setdefault((row.document_id, row.version), []).append(
            _readable_step(step_record(row), reader)
        )
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
            parent_id=row.parent_id if row.parent_id in parents else None,
            readers=readers[row.audience],
            newest=version,
            steps=tuple(mine),
            state=_state(row.deleted_at, version, mine),
        )
    return [records[i] for i in ids if i in records]


def _readable_step(step: StepRecord, reader: Reader | None) -> StepRecord:
    if reader is None:
        return step
    return replace(step, counts=readable_counts(step.counts, reader) or {})


def _readable_ids(
    database: Database, ids: Collection[str | None], reader: Reader | None
) -> Collection[str | None]:
    """The ids among these that the reader may know."""
    if reader is None or not any(ids):
        return ids
    query = select(_D.document_id).where(_D.document_id.in_(filter(None, ids)), readable(reader))
    with database.reading() as connection:
        return set(connection.scalars(query))


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


def read_states(
    database: Database,
    collection: str | None,
    tenants: Collection[str] | None,
    reader: Reader | None,
) -> dict[str, int]:
    """The number of documents by the state of their newest version, as `Documents.states`.

    The live ones are those that are neither queued nor failed: to read the newest version of each
    of 100,000 documents took .2 to 1.2 s.
    """
    conditions = [readable(reader)]
    if collection is not None:
        conditions.append(_D.collection == collection)
    if tenants is not None:
        conditions.append(_D.tenant.in_(list(tenants)))
    query = _NOT_LIVE.where(*conditions).union_all(_PRESENT.where(*conditions))
    with database.reading() as connection:
        counts = {row[0]: row[1] for row in connection.execute(query)}
    counts["live"] -= sum(count for state, count in counts.items() if state != "live")
    return {state: count for state, count in counts.items() if count}
