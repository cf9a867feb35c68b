"""All that the ledger says of a live document, as one value that can move to another ledger."""

import time
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

from pydantic import Field
from sqlalchemy import Connection, Row, delete, func, insert, or_, select
from sqlalchemy.exc import IntegrityError

from callslip.errors import CollectionNotFound, Conflict
from stores.ledger import events, moves, schema
from stores.ledger.chunks import IDS_PER_STATEMENT
from stores.ledger.database import Database
from stores.ledger.locks import lock_document
from stores.ledger.moves import Move
from stores.ledger.records import STEPS, Failure, Step
from stores.ledger.tenants import make_tenant

_D, _V, _S, _C, _P = (
    table.c
    for table in (schema.documents, schema.versions, schema.steps, schema.chunks, schema.copies)
)

_Count = Annotated[int, Field(ge=0, lt=2**31)]
_Name = Annotated[str, Field(max_length=1024)]
_Time = Annotated[float, Field(allow_inf_nan=False)]

Standing = Literal["new", "same", "newer", "deleted"]
"""How a document that arrives stands in this ledger already."""


@dataclass(frozen=True)
class VersionRow:
    """One content of a document that is or was live, or failed."""

    version: _Count
    state: Literal["live", "superseded", "failed"]
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    size: _Count
    filename: _Name
    title: _Name
    properties: dict[str, Any]
    error: Failure | None
    created_at: _Time
    finished_at: _Time | None
    restores: _Count | None = None
    superseded_by: _Count | None = None


@dataclass(frozen=True)
class StepRow:
    """A step of the live version, done. Of artifacts only the extracted text moves."""

    step: Step
    attempts: _Count
    crashes: _Count
    started_at: _Time | None
    finished_at: _Time | None
    artifact: Annotated[str, Field(max_length=256)] | None
    counts: dict[str, int] | None


@dataclass(frozen=True)
class ChunkRow:
    """Since which version a chunk of the live version stands where it does in the document."""

    first_version: _Count
    text_hash: Annotated[str, Field(max_length=64)]
    start: _Count | None = None
    end: _Count | None = None


@dataclass(frozen=True)
class Transcript:
    """A live document. `chunks` are those of the live version, by id."""

    document_id: str
    tenant: Annotated[str, Field(max_length=128)]
    name: _Name
    live_version: Annotated[int, Field(ge=1, lt=2**31)]
    created_at: _Time
    versions: tuple[VersionRow, ...]
    steps: tuple[StepRow, ...]
    chunks: dict[str, ChunkRow]
    parent_id: Annotated[str, Field(pattern="^[0-9A-Za-z_-]{1,32}$")] | None = None
    parent_version: _Count | None = None

    @property
    def live(self) -> VersionRow:
        """The live version; StopIteration where a stranger's transcript has none."""
        return next(v for v in self.versions if v.version == self.live_version)


@dataclass(frozen=True)
class Snapshot:
    """A transcript and what tells it from a later one.

    `upserts` counts how often an upsert of the document was begun; `upserting` says until when the
    lease of one runs that did not end: the store may hold other things than the live version has.
    """

    transcript: Transcript
    upserts: int
    upserting: float | None


class Transcripts:
    """Reading what the ledger says of documents, and writing it into another ledger."""

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

    def counts(self, collection: str) -> dict[str, tuple[int, int]]:
        """How many live documents, and chunks of them, each tenant has; "" where there are none."""
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
            held = {row[0]: row[1] for row in connection.execute(chunks)}
            found = {row[0]: row[1] for row in connection.execute(documents)}
        return {tenant: (n, held.get(tenant, 0)) for tenant, n in found.items()}

    def left_out(self, collection: str) -> int:
        """How many documents have no live version."""
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
        """What there is to say now; None where the document is deleted or not live."""
        with self._database.writing() as connection:  # so that all of it is of one moment
            document = lock_document(connection, document_id)
            if document is None or document.live_version is None:
                return None
            return _snapshot(connection, document)

    def standing(self, collection: str, given: Transcript) -> Standing:
        """How a document that arrives stands here; Conflict where it cannot arrive.

        newer: it was changed here since; deleted: it was deleted here, and stays so.
        """
        with self._database.reading() as connection:
            return _standing(connection, collection, given)

    def write(self, collection: str, given: Transcript, under: Move) -> None:
        """Let a document arrive: live at once and whole. Conflict where another is in its place.

        LeaseLost where the lease that it is written under is no longer held.
        """
        try:
            with self._database.writing() as connection:
                moves.renew(connection, under)
                _arrive(connection, collection, given)
        except IntegrityError:
            raise Conflict(
                f"document {given.document_id}, its name or one of its chunks is here already"
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
        .order_by(_C.first_version.desc())  # of two rows of a chunk the older one is kept
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


def _standing(connection: Connection, collection: str, given: Transcript) -> Standing:
    here = connection.execute(
        select(schema.documents).where(_D.document_id == given.document_id)
    ).one_or_none()
    if here is None:
        _check_chunks_free(connection, given)
        return "new"
    if here.collection != collection or here.tenant != given.tenant:
        raise Conflict(
            f"document {given.document_id} is here already, in collection {here.collection!r}",
            hint="Documents keep their ids: import into another installation, or delete that"
            " collection first.",
        )
    if here.deleted_at is not None:
        return "deleted"
    if here.live_version is not None and here.live_version > given.live_version:
        return "newer"
    if here.live_version is not None:
        known = _snapshot(connection, here).transcript
        if (known.live_version, known.live.sha256, known.chunks.keys()) == (
            given.live_version,
            given.live.sha256,
            given.chunks.keys(),
        ):
            return "same"
    raise Conflict(
        f"document {given.document_id} is here already, in another state",
        hint="Delete the collection, or import into another installation.",
    )


def _check_chunks_free(connection: Connection, given: Transcript) -> None:
    ids = list(given.chunks)
    for start in range(0, len(ids), IDS_PER_STATEMENT):
        some = ids[start : start + IDS_PER_STATEMENT]
        other = connection.scalar(select(_C.document_id).where(_C.chunk_id.in_(some)).limit(1))
        if other is not None:
            raise Conflict(
                f"a chunk of document {given.document_id} is here already, in document {other}",
                hint="Delete that document, or import into another installation.",
            )


def _is_elsewhere(connection: Connection, collection: str, given: Transcript) -> bool:
    """Whether the parent that it names is here as a document of another collection or tenant."""
    here = connection.execute(
        select(_D.collection, _D.tenant).where(_D.document_id == given.parent_id)
    ).one_or_none()
    return here is not None and (here.collection, here.tenant) != (collection, given.tenant)


def _arrive(connection: Connection, collection: str, given: Transcript) -> None:
    found = schema.collections.c
    open_ = connection.scalar(
        select(found.name)
        .where(found.name == collection, found.deleted_at.is_(None))
        .with_for_update(read=True)
    )
    if open_ is None:
        raise CollectionNotFound(f"collection {collection!r} does not exist")
    if given.tenant:
        make_tenant(connection, collection, given.tenant, time.time())
    _check_chunks_free(connection, given)
    mine = {"document_id": given.document_id}
    connection.execute(
        insert(schema.documents).values(
            **mine,
            collection=collection,
            tenant=given.tenant,
            name=given.name,
            live_version=given.live_version,
            created_at=given.created_at,
            parent_id=None if _is_elsewhere(connection, collection, given) else given.parent_id,
            parent_version=given.parent_version,
        )
    )
    sent = {"nudged_at": time.time()}
    connection.execute(
        insert(schema.versions), [mine | sent | asdict(version) for version in given.versions]
    )
    done = {"version": given.live_version, "state": "done"}
    connection.execute(insert(schema.steps), [mine | done | asdict(step) for step in given.steps])
    if given.chunks:
        connection.execute(
            insert(schema.chunks),
            [mine | {"chunk_id": i} | asdict(chunk) for i, chunk in given.chunks.items()],
        )
    events.add(
        connection, "document.live", given.document_id, given.live_version, sent["nudged_at"]
    )
    connection.execute(
        delete(schema.copies).where(
            _P.collection == collection, _P.document_id == given.document_id
        )
    )
