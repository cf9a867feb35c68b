"""Documents and their versions in the ledger: coming in, being looked at, going away."""

import json
import time
import uuid
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Row, Select, exists, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from callslip.errors import CollectionNotFound, DocumentNotFound, DuplicateContent
from stores.ledger import batches, events, family, schema
from stores.ledger.attachments import check_ours
from stores.ledger.database import Database
from stores.ledger.leases import held
from stores.ledger.records import (
    STEPS,
    Accepted,
    Claim,
    DocumentRecord,
    DocumentState,
    Step,
    StepRecord,
    Submission,
    VersionRecord,
)
from stores.ledger.rows import step_record, version_record
from stores.ledger.tenants import make_tenant
from stores.ledger.turns import WAITING, lane_of, withdraw
from stores.ledger.versions import add_steps, newest_of, requeue, supersede

_D, _V, _S = schema.documents.c, schema.versions.c, schema.steps.c


class Documents:
    """Submitting, reading and deleting documents."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def id_of(self, collection: str, name: str, *, tenant: str = "") -> str | None:
        """The id of the document of this name, where there is one."""
        with self._database.reading() as connection:
            return connection.scalar(
                _named(collection, tenant, name).with_only_columns(_D.document_id)
            )

    def submit(
        self,
        collection: str,
        submission: Submission,
        new_id: str,
        *,
        tenant: str = "",
        parent: Claim | None = None,
        alone: bool = False,
    ) -> Accepted:
        """Record a new version of the document of this name, or find that nothing is new.

        A name that is not known yet gets the id `new_id`, under which its original lies already.
        Newest wins: a version still on its way is superseded. The same content, title and
        properties again are no new version, unless the version failed: then it is queued anew.
        The id is another one than `new_id` where somebody made the name, or deleted the document of
        that id, meanwhile. CollectionNotFound where the collection is gone, AttachedReadOnly where
        it is a table of somebody else. A tenant's first document makes the tenant; Conflict while
        one of that name is being removed.

        A child is submitted under its parent's claim: LeaseLost once that is no longer held, and
        Conflict where a document of another origin has the name.

        `alone`: DuplicateContent where another name holds these bytes, also when both are submitted
        in the same moment.
        """
        if submission.batch:
            batches.make(self._database, submission.batch)
        try:
            return self._submit(collection, tenant, submission, new_id, parent, alone=alone)
        except IntegrityError:  # on PostgreSQL two may make a name at once; a deleted id is taken
            another_id = uuid.uuid4().hex
            return self._submit(collection, tenant, submission, another_id, parent, alone=alone)

    def _submit(
        self,
        collection: str,
        tenant: str,
        submission: Submission,
        new_id: str,
        parent: Claim | None,
        *,
        alone: bool,
    ) -> Accepted:
        now = time.time()
        with self._database.writing() as connection:
            if parent is not None:
                held(connection, parent)
            if connection.scalar(_open_collection(collection)) is None:
                raise CollectionNotFound(f"collection {collection!r} does not exist")
            check_ours(connection, collection)
            if alone:
                if not self._database.is_sqlite:  # whose writers take turns
                    lock = int(submission.sha256[:15], 16)
                    connection.execute(select(func.pg_advisory_xact_lock(lock)))
                held_by = _holders(collection, tenant, submission.sha256, but=submission.name)
                if twin := connection.scalar(held_by.limit(1)):
                    raise _duplicate(connection, twin)
            if tenant:
                make_tenant(connection, collection, tenant, now)
            found = connection.execute(
                _named(collection, tenant, submission.name).with_for_update()
            ).one_or_none()
            if found is None:
                document_id, version = new_id, 1
                connection.execute(
                    insert(schema.documents).values(
                        document_id=document_id,
                        collection=collection,
                        tenant=tenant,
                        name=submission.name,
                        created_at=now,
                        **family.columns(parent),
                    )
                )
            else:
                document_id = found.document_id
                family.adopt(connection, document_id, parent)
                newest = newest_of(connection, document_id)
                submission = _completed(submission, newest)
                if _same_content(newest, submission):
                    again = Accepted(document_id, newest.version, fresh=newest.state == "failed")
                    batches.add(connection, submission.batch, collection, again, now)
                    batches.add_within(connection, parent, collection, again, now)
                    if newest.state == "failed":
                        requeue(connection, found, newest.version, now)
                    return again
                version = newest.version + 1
                supersede(connection, document_id, version, now)
            connection.execute(
                insert(schema.versions).values(
                    document_id=document_id,
                    version=version,
                    state="queued",
                    sha256=submission.sha256,
                    size=submission.size,
                    filename=submission.filename,
                    title=submission.title or "",
                    properties=submission.properties or {},
                    created_at=now,
                    nudged_at=now,
                    turn=WAITING,
                    lane=lane_of(collection, tenant),
                    priority=submission.priority,
                    former=found.live_version if found else None,
                )
            )
            add_steps(connection, document_id, version)
            accepted = Accepted(document_id, version, fresh=True)
            batches.add(connection, submission.batch, collection, accepted, now)
            batches.add_within(connection, parent, collection, accepted, now)
            events.add(connection, "document.queued", document_id, version, now)
        return accepted

    def with_content(
        self, collection: str, sha256: str, *, but: str, tenant: str = ""
    ) -> list[str]:
        """Ids of documents under other names than `but` that hold exactly these bytes."""
        with self._database.reading() as connection:
            rows = connection.execute(_holders(collection, tenant, sha256, but=but))
            return [row.document_id for row in rows]

    def duplicate(self, document_id: str) -> DuplicateContent:
        """The error for content that this document holds."""
        with self._database.reading() as connection:
            return _duplicate(connection, document_id)

    def version(self, document_id: str, version: int) -> VersionRecord:
        """One version; DocumentNotFound where there is none."""
        with self._database.reading() as connection:
            row = connection.execute(
                _versions_query().where(_V.document_id == document_id, _V.version == version)
            ).one_or_none()
        if row is None:
            raise DocumentNotFound(f"document {document_id!r} has no version {version}")
        return version_record(row, row)

    def artifact(self, document_id: str, version: int, step: Step) -> str | None:
        """The name of what a step put out, once it is done."""
        with self._database.reading() as connection:
            return connection.scalar(
                select(_S.artifact).where(
                    _S.document_id == document_id, _S.version == version, _S.step == step
                )
            )

    def get(self, document_id: str) -> DocumentRecord:
        """A document as it stands now, deleted ones too; DocumentNotFound where there is none."""
        found = self._read([document_id])
        if not found:
            raise DocumentNotFound(f"document {document_id!r} does not exist")
        return found[0]

    def find(
        self,
        collection: str,
        *,
        tenant: str | None = None,
        parent: str | None = None,
        limit: int = 100,
        before: float | None = None,
    ) -> list[DocumentRecord]:
        """Documents of a collection, newest first; `before` is the last page's smallest time.

        Of all tenants where none is named; with `parent` only those that came within that document.
        """
        query = (
            select(_D.document_id)
            .where(_D.collection == collection, _D.deleted_at.is_(None))
            .order_by(_D.created_at.desc(), _D.document_id)
            .limit(limit)
        )
        if tenant is not None:
            query = query.where(_D.tenant == tenant)
        if parent is not None:
            query = query.where(_D.parent_id == parent)
        if before is not None:
            query = query.where(_D.created_at < before)
        with self._database.reading() as connection:
            ids = list(connection.scalars(query))
        return self._read(ids)

    def states(self, collection: str | None = None) -> dict[str, int]:
        """How many documents are in each state of their newest version."""
        newer = schema.versions.alias()
        query = (
            select(_V.state, func.count())
            .join(schema.documents, _D.document_id == _V.document_id)
            .where(_D.deleted_at.is_(None))
            .where(
                ~exists().where(newer.c.document_id == _V.document_id, newer.c.version > _V.version)
            )
            .group_by(_V.state)
        )
        if collection is not None:
            query = query.where(_D.collection == collection)
        with self._database.reading() as connection:
            return {row.state: row[1] for row in connection.execute(query)}

    def delete(self, document_id: str) -> None:
        """Hide a document and all that came within it at once; what they left is removed after.

        Idempotent.
        """
        now = time.time()
        with self._database.writing() as connection:
            found = connection.execute(
                update(schema.documents)
                .where(_D.document_id == document_id)
                .values(deleted_at=func.coalesce(_D.deleted_at, now))
            )
            if found.rowcount == 0:
                raise DocumentNotFound(f"document {document_id!r} does not exist")
            withdraw(connection, _D.document_id == document_id, now)
            events.add_deleted(connection, _D.document_id == document_id, now)
            family.hide_below(connection, [document_id], now)

    def removing(self, document_id: str, before: dict[str, int]) -> None:
        """Record what a deleted document left, before the first of it is removed."""
        with self._database.writing() as connection:
            connection.execute(
                update(schema.documents)
                .where(_D.document_id == document_id)
                .values(receipt={"before": before})
            )

    def removed(self, document_id: str, receipt: dict[str, Any]) -> None:
        """Record that nothing of a deleted document is left, with the counts that show it."""
        now = time.time()
        with self._database.writing() as connection:
            connection.execute(
                update(schema.documents)
                .where(_D.document_id == document_id)
                .values(removed_at=now, receipt=receipt)
            )
            events.add(connection, "document.removed", document_id, None, now, data=receipt)

    def _read(self, document_ids: Iterable[str]) -> list[DocumentRecord]:
        ids = list(document_ids)
        with self._database.snapshot() as connection:
            documents = connection.execute(
                select(schema.documents).where(_D.document_id.in_(ids))
            ).all()
            versions = connection.execute(
                _versions_query().where(_V.document_id.in_(ids)).order_by(_V.version)
            ).all()
            newest = {row.document_id: version_record(row, row) for row in versions}
            rows = connection.execute(select(schema.steps).where(_S.document_id.in_(ids))).all()
        steps: dict[tuple[str, int], list[StepRecord]] = {}
        for row in rows:
            steps.setdefault((row.document_id, row.version), []).append(step_record(row))
        records = {}
        for row in documents:
            version = newest[row.document_id]
            mine = sorted(
                steps[row.document_id, version.version], key=lambda s: STEPS.index(s.step)
            )
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


def _named(collection: str, tenant: str, name: str) -> Select[Any]:
    return select(schema.documents).where(
        _D.collection == collection,
        _D.tenant == tenant,
        _D.name == name,
        _D.deleted_at.is_(None),
    )


def _open_collection(name: str) -> Select[str]:
    """Locked against its deletion until the transaction ends."""
    found = schema.collections.c
    return (
        select(found.name)
        .where(found.name == name, found.deleted_at.is_(None))
        .with_for_update(read=True)
    )


def _duplicate(connection: Connection, document_id: str) -> DuplicateContent:
    """The error for content that another document holds."""
    name = connection.scalar(select(_D.name).where(_D.document_id == document_id))
    return DuplicateContent(f"document {name!r} ({document_id}) holds the same content")


def _holders(collection: str, tenant: str, sha256: str, *, but: str) -> Select[Any]:
    return (
        select(_D.document_id)
        .join(schema.versions, _V.document_id == _D.document_id)
        .where(_D.collection == collection, _D.tenant == tenant)
        .where(_D.deleted_at.is_(None), _D.name != but)
        .where(_V.sha256 == sha256, _V.state.in_(("queued", "live")))
    )


def _completed(submission: Submission, newest: Row[Any]) -> Submission:
    """With what is not said of the same content as it was."""
    if submission.sha256 != newest.sha256:
        return submission
    return replace(
        submission,
        title=newest.title if submission.title is None else submission.title,
        properties=newest.properties if submission.properties is None else submission.properties,
    )


def _same_content(newest: Row[Any], submission: Submission) -> bool:
    return (newest.sha256, newest.title, newest.filename, _told(newest.properties)) == (
        submission.sha256,
        submission.title,
        submission.filename,
        _told(submission.properties),
    )


def _told(properties: dict[str, Any] | None) -> str:
    """As JSON: Python takes 1, 1.0 and True for the same."""
    return json.dumps(properties, sort_keys=True)


def _versions_query() -> Any:
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
