"""Reads the ledger rows of a live document as one value and writes them into another ledger."""

import time
from dataclasses import asdict
from typing import Any, Literal

from sqlalchemy import Connection, Row, delete, exists, func, insert, or_, select
from sqlalchemy.exc import IntegrityError

from callslip.errors import CollectionNotFound, Conflict
from callslip.readers import (
    Readers,
)
from callslip.stores.ledger.base import corrections, schema
from callslip.stores.ledger.base.database import Database
from callslip.stores.ledger.base.locks import lock_document
from callslip.stores.ledger.base.records import STEPS, Failure
from callslip.stores.ledger.collections import moves
from callslip.stores.ledger.collections.moves import Move
from callslip.stores.ledger.collections.tenants import make_tenant
from callslip.stores.ledger.documents.chunks import IDS_PER_STATEMENT
from callslip.stores.ledger.documents.pages import PageTable
from callslip.stores.ledger.documents.readers import put_audience
from callslip.stores.ledger.outbox import events
from callslip.stores.ledger.transcripts.values import (
    ChunkRow,
    Snapshot,
    StepRow,
    Transcript,
    VersionRow,
)

_D, _V, _S, _C, _P, _R = (
    table.c
    for table in (
        *(schema.documents, schema.versions, schema.steps, schema.chunks, schema.copies),
        schema.readers,
    )
)

Standing = Literal["new", "same", "newer", "deleted"]
"""How an imported document compares with the one of its id in this ledger."""


class Transcripts:
    """Reads transcripts of documents, and writes them into another ledger."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def ids(self, collection: str, *, after: str = "", limit: int = 200) -> list[tuple[str, int]]:
        """Ids and versions of live documents in order of their ids, from the one after `after`."""
        query = (
            select(_D.document_id, _D.live_version)
            .where(_D.collection == collection, _D.document_id > after)
            .where(_D.deleted_at.is_(None), _D.live_version.is_not(None))
            .order_by(_D.document_id)
            .limit(limit)
        )
        with self._database.reading() as connection:
            return [(row.document_id, row.live_version) for row in connection.execute(query)]

    def sample(self, collection: str, size: int) -> list[str]:
        """Ids of live documents, taken at random."""
        query = (
            select(_D.document_id)
            .where(_D.collection == collection)
            .where(_D.deleted_at.is_(None), _D.live_version.is_not(None))
            .order_by(func.random())
            .limit(size)
        )
        with self._database.reading() as connection:
            return list(connection.scalars(query))

    def any_readers(self, collection: str) -> bool:
        """Whether a document of the collection is, or was, not for everyone."""
        limited = exists().where(schema.audiences.c.collection == collection)
        with self._database.reading() as connection:
            return bool(connection.scalar(select(limited)))

    def counts(self, collection: str) -> dict[str, tuple[int, int]]:
        """The numbers of live documents and their chunks by tenant ("" if there are no tenants)."""
        ours = (_D.collection == collection) & _D.deleted_at.is_(None)
        documents = (
            select(_D.tenant, func.count())
            .where(ours, _D.live_version.is_not(None))
            .group_by(_D.tenant)
        )
        chunks = (
            select(_D.tenant, func.count(_C.chunk_id.distinct()))
            .join(schema.chunks, _C.document_id == _D.document_id)
            .where(ours, *_in_live_version())
            .group_by(_D.tenant)
        )
        with self._database.reading() as connection:
            chunk_counts = {row[0]: row[1] for row in connection.execute(chunks)}
            by_tenant = {row[0]: row[1] for row in connection.execute(documents)}
        return {tenant: (n, chunk_counts.get(tenant, 0)) for tenant, n in by_tenant.items()}

    def left_out(self, collection: str) -> int:
        """The number of documents without a live version."""
        with self._database.reading() as connection:
            return (
                connection.scalar(
                    select(func.count())
                    .select_from(schema.documents)
                    .where(_D.collection == collection)
                    .where(_D.deleted_at.is_(None), _D.live_version.is_(None))
                )
                or 0
            )

    def read(self, document_id: str) -> Snapshot | None:
        """The current snapshot of a document; None if it is deleted or has no live version."""
        with self._database.writing() as connection:  # so that all rows are of one moment
            document = lock_document(connection, document_id)
            if document is None or document.live_version is None:
                return None
            return _snapshot(connection, document)

    def standing(self, collection: str, transcript: Transcript) -> Standing:
        """Compare an imported document with this ledger. Raises Conflict if it cannot be imported.

        `newer`: the document was changed here after the export. `deleted`: it was deleted here, and
        must stay deleted.
        """
        with self._database.reading() as connection:
            return _standing(connection, collection, transcript)

    def write(self, collection: str, transcript: Transcript, under: Move) -> None:
        """Write a complete live document into this ledger, in one transaction.

        Raises Conflict if another document has its id, its name or one of its chunks, LeaseLost if
        the move no longer has its lease.
        """
        try:
            with self._database.writing() as connection:
                moves.renew(connection, under)
                _arrive(connection, collection, transcript)
        except IntegrityError:
            raise Conflict(
                f"document {transcript.document_id}, its name or one of its chunks is here already"
                " as another document's",
                hint="Import into a collection that has no documents of its own.",
            ) from None


def _in_live_version() -> tuple[Any, Any]:
    return (
        _C.first_version <= _D.live_version,
        or_(_C.last_version.is_(None), _C.last_version >= _D.live_version),
    )


def _snapshot(connection: Connection, document: Row[Any]) -> Snapshot:
    live, mine = document.live_version, document.document_id
    versions = connection.execute(
        select(schema.versions)
        .where(_V.document_id == mine, _V.version <= live)
        .order_by(_V.version)
    ).all()
    steps = connection.execute(select(schema.steps).where(_S.document_id == mine)).all()
    chunks = connection.execute(
        select(_C.chunk_id, _C.first_version, _C.text_hash, _C.start, _C.end)
        .join(schema.documents, _D.document_id == _C.document_id)
        .where(_C.document_id == mine, *_in_live_version())
        .order_by(_C.first_version.desc())  # the oldest row of a chunk comes last and counts
    )
    of_live = sorted(
        (row for row in steps if row.version == live), key=lambda row: STEPS.index(row.step)
    )
    upserts = [row for row in steps if row.step == "upsert"]
    return Snapshot(
        Transcript(
            document_id=mine,
            tenant=document.tenant,
            name=document.name,
            parent_id=document.parent_id,
            parent_version=document.parent_version,
            readers=_readers_of(connection, document.audience),
            live_version=live,
            created_at=document.created_at,
            versions=tuple(_version(row, live) for row in versions),
            steps=tuple(_step(row) for row in of_live),
            chunks={
                row.chunk_id: ChunkRow(row.first_version, row.text_hash, row.start, row.end)
                for row in chunks
            },
        ),
        upserts=sum(row.attempts for row in upserts),
        upserting=max((row.lease_until for row in upserts if row.state == "running"), default=None),
    )


def _readers_of(connection: Connection, audience: str) -> Readers | None:
    if not audience:
        return None
    query = select(_R.reader).where(_R.audience == audience).order_by(_R.reader)
    return tuple(connection.scalars(query))


def _version(row: Row[Any], live: int) -> VersionRow:
    state = "live" if row.version == live else "failed" if row.state == "failed" else "superseded"
    return VersionRow(
        version=row.version,
        state=state,  # type: ignore[arg-type]  # one of the three
        sha256=row.sha256,
        size=row.size,
        filename=row.filename,
        title=row.title,
        properties=row.properties,
        error=Failure(**row.error) if row.error else None,
        created_at=row.created_at,
        finished_at=row.finished_at,
        restores=row.restores,
        superseded_by=row.superseded_by,
        pages=PageTable.from_json(row.pages) if row.pages else None,
        corrections=corrections.from_json(row.corrections) or None,
        url=row.url,
        language=row.language,
        by_hand=tuple(row.by_hand or ()),
        edited=None if row.edited is None else tuple(row.edited),
        chunking=row.chunking,
    )


def _step(row: Row[Any]) -> StepRow:
    return StepRow(
        step=row.step,
        attempts=row.attempts,
        crashes=row.crashes,
        started_at=row.started_at,
        finished_at=row.finished_at,
        artifact=row.artifact if row.step == "extract" else None,
        counts=row.counts,
    )


def _standing(connection: Connection, collection: str, transcript: Transcript) -> Standing:
    here = connection.execute(
        select(schema.documents).where(_D.document_id == transcript.document_id)
    ).one_or_none()
    if here is None:
        _check_chunks_free(connection, transcript)
        return "new"
    if here.collection != collection or here.tenant != transcript.tenant:
        raise Conflict(
            f"document {transcript.document_id} is here already, in collection {here.collection!r}",
            hint="Documents keep their ids: import into another installation, or delete that"
            f" collection first: `callslip delete -c {here.collection} --all`.",
        )
    if here.deleted_at is not None:
        return "deleted"
    if here.live_version is not None and here.live_version > transcript.live_version:
        return "newer"
    if here.live_version is not None:
        known = _snapshot(connection, here).transcript
        if (known.live_version, known.live.sha256, known.chunks.keys()) == (
            transcript.live_version,
            transcript.live.sha256,
            transcript.chunks.keys(),
        ):
            return "same"
    raise Conflict(
        f"document {transcript.document_id} is here already, in another state",
        hint="Delete the collection, or import into another installation.",
    )


def _check_chunks_free(connection: Connection, transcript: Transcript) -> None:
    ids = list(transcript.chunks)
    for start in range(0, len(ids), IDS_PER_STATEMENT):
        some = ids[start : start + IDS_PER_STATEMENT]
        other = connection.scalar(select(_C.document_id).where(_C.chunk_id.in_(some)).limit(1))
        if other is not None:
            raise Conflict(
                f"a chunk of document {transcript.document_id} is here already,"
                f" in document {other}",
                hint="Delete that document, or import into another installation.",
            )


def _is_elsewhere(connection: Connection, collection: str, transcript: Transcript) -> bool:
    """Whether the transcript's parent exists here in another collection or tenant."""
    here = connection.execute(
        select(_D.collection, _D.tenant).where(_D.document_id == transcript.parent_id)
    ).one_or_none()
    return here is not None and (here.collection, here.tenant) != (collection, transcript.tenant)


def _arrive(connection: Connection, collection: str, transcript: Transcript) -> None:
    columns = schema.collections.c
    open_ = connection.scalar(
        select(columns.name)
        .where(columns.name == collection, columns.deleted_at.is_(None))
        .with_for_update(read=True)
    )
    if open_ is None:
        raise CollectionNotFound(f"collection {collection!r} does not exist")
    if transcript.tenant:
        make_tenant(connection, collection, transcript.tenant, time.time())
    _check_chunks_free(connection, transcript)
    audience = put_audience(connection, collection, transcript.tenant, transcript.list_of_readers)
    mine = {"document_id": transcript.document_id}
    elsewhere = _is_elsewhere(connection, collection, transcript)
    connection.execute(
        insert(schema.documents).values(
            **mine,
            collection=collection,
            tenant=transcript.tenant,
            name=transcript.name,
            live_version=transcript.live_version,
            created_at=transcript.created_at,
            parent_id=None if elsewhere else transcript.parent_id,
            parent_version=transcript.parent_version,
            audience=audience,
        )
    )
    sent = {"dispatched_at": time.time()}
    connection.execute(
        insert(schema.versions), [mine | sent | asdict(version) for version in transcript.versions]
    )
    done = {"version": transcript.live_version, "state": "done"}
    connection.execute(
        insert(schema.steps), [mine | done | asdict(step) for step in transcript.steps]
    )
    if transcript.chunks:
        connection.execute(
            insert(schema.chunks),
            [mine | {"chunk_id": i} | asdict(chunk) for i, chunk in transcript.chunks.items()],
        )
    events.add(
        connection,
        "document.live",
        transcript.document_id,
        transcript.live_version,
        sent["dispatched_at"],
    )
    connection.execute(
        delete(schema.copies).where(
            _P.collection == collection, _P.document_id == transcript.document_id
        )
    )
