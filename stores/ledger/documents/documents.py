"""Submits, reads and deletes documents and their versions in the ledger."""

import time
import uuid
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from sqlalchemy import JSON, Connection, bindparam, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from callslip.errors import CollectionNotFound, DocumentNotFound, DuplicateContent, NameTaken
from callslip.readers import Reader
from callslip.stores.ledger.base import schema
from callslip.stores.ledger.base.attached import check_ours
from callslip.stores.ledger.base.corrections import carried
from callslip.stores.ledger.base.database import Database
from callslip.stores.ledger.base.fair_queue import WAITING, tenant_queue_of, withdraw
from callslip.stores.ledger.base.readable import limited, of_readable, readable
from callslip.stores.ledger.base.records import (
    Accepted,
    Claim,
    DocumentRecord,
    Step,
    Submission,
    VersionRecord,
)
from callslip.stores.ledger.base.rows import version_record
from callslip.stores.ledger.collections.tenants import make_tenant
from callslip.stores.ledger.documents import attachments, batches
from callslip.stores.ledger.documents.content import duplicate, holders, no_version, same_content
from callslip.stores.ledger.documents.edits import completed
from callslip.stores.ledger.documents.pages import lacks_pages
from callslip.stores.ledger.documents.progress import claimed_row
from callslip.stores.ledger.documents.readers import put_audience, restrict_as, set_readers
from callslip.stores.ledger.documents.reading import read_documents, read_states, versions_query
from callslip.stores.ledger.documents.versions import add_steps, newest_of, requeue, supersede
from callslip.stores.ledger.outbox import events

_D, _V, _S, _C = schema.documents.c, schema.versions.c, schema.steps.c, schema.collections.c

# Statements of the hot path are built once: building one costs more than running it.
_NAMED = select(schema.documents).where(
    _D.collection == bindparam("collection"),
    _D.tenant == bindparam("tenant"),
    _D.name == bindparam("named"),
    _D.deleted_at.is_(None),
)
_ID_NAMED, _LOCK_NAMED = _NAMED.with_only_columns(_D.document_id), _NAMED.with_for_update()
_OPEN = (  # locks an existing collection against deletion until the transaction ends
    select(_C.name)
    .where(_C.name == bindparam("of"), _C.deleted_at.is_(None))
    .with_for_update(read=True)
)
_ADD_DOCUMENT, _ADD_VERSION = insert(schema.documents), insert(schema.versions)


class Documents:
    """Submits, reads and deletes documents."""

    def __init__(self, database: Database, reader: Reader | None = None) -> None:
        self._database, self._reader = database, reader

    def id_of(self, collection: str, name: str, *, tenant: str = "") -> str | None:
        """The id of the document with this name; None if there is none that is readable."""
        with self._database.reading() as connection:
            query = limited(_ID_NAMED, _D.document_id, self._reader)
            values = {"collection": collection, "tenant": tenant, "named": name}
            document_id: str | None = connection.scalar(query, values)
            return document_id

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
        """Record a new version of the document with this name, unless its content is unchanged.

        A new name gets the id `new_id`, under which the caller has stored the original. If another
        process has created the name meanwhile, or a deleted document has the id, the result has
        another id. A queued version is superseded by the new one. If content, title, file name,
        properties, URL and language equal those of the newest version, no version is made; if that
        one failed, it is queued again. The exception is a live version whose pages are unknown: it
        is made anew. The first document of a tenant creates the tenant. The submission's readers
        apply at once, to every version; `DocumentReaders.due` then has a document without a new
        version.

        `parent` is the claim on the parent document under which a child document is submitted; the
        child has the readers of its parent.
        With `alone`, no other name may have the same bytes, even if both are submitted at the same
        moment.

        Raises CollectionNotFound if the collection does not exist, AttachedReadOnly if it is an
        attached table, Conflict while a tenant of this name is being removed, DuplicateContent if
        `alone` is violated, NameTaken if the name is that of a document that the reader of this
        ledger may not read. For a child: LeaseLost if the parent's claim has ended, and Conflict if
        a document of another origin has the name.
        """
        if submission.batch:
            batches.make(self._database, submission.batch)
        try:
            return self._submit(collection, tenant, submission, new_id, parent, alone=alone)
        except (
            IntegrityError
        ):  # on PostgreSQL, two calls may create a name at once; or a deleted document has the id
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
                claimed_row(connection, parent)
            if connection.scalar(_OPEN, {"of": collection}) is None:
                raise CollectionNotFound(f"collection {collection!r} does not exist")
            check_ours(connection, collection)
            if alone:
                if not self._database.is_sqlite:  # SQLite has one writer at a time
                    lock = int(submission.sha256[:15], 16)
                    connection.execute(select(func.pg_advisory_xact_lock(lock)))
                sha256, but = submission.sha256, submission.name
                if twins := holders(connection, collection, tenant, sha256, self._reader, but=but):
                    raise duplicate(connection, twins[0])
            if tenant:
                make_tenant(connection, collection, tenant, now)
            name = {"collection": collection, "tenant": tenant, "named": submission.name}
            existing = connection.execute(_LOCK_NAMED, name).one_or_none()
            if existing is None:
                audience = _audience(connection, collection, tenant, submission, parent)
                document_id, version, by_hand, chunking = new_id, 1, None, None
                document = {
                    "document_id": document_id,
                    "collection": collection,
                    "tenant": tenant,
                    "name": submission.name,
                    "created_at": now,
                    "audience": audience,
                    **attachments.columns(parent),
                }
                connection.execute(_ADD_DOCUMENT, document)
            else:
                document_id = existing.document_id
                self._check_readable(connection, document_id)
                attachments.adopt(connection, document_id, parent)
                if parent is not None:
                    restrict_as(connection, document_id, parent.document_id)
                elif submission.readers is not None:
                    set_readers(connection, existing, submission.readers)
                newest = newest_of(connection, document_id)
                submission, by_hand = completed(submission, newest)
                if same_content(newest, submission) and not lacks_pages(newest):
                    again = Accepted(document_id, newest.version, fresh=newest.state == "failed")
                    batches.add(connection, submission.batch, collection, again, now)
                    batches.add_within(connection, parent, collection, again, now)
                    if newest.state == "failed":
                        requeue(connection, existing, newest.version, now)
                    return again
                version, chunking = newest.version + 1, newest.chunking
                supersede(connection, document_id, version, now)
            row = {
                "document_id": document_id,
                "version": version,
                "state": "queued",
                "sha256": submission.sha256,
                "size": submission.size,
                "filename": submission.filename,
                "title": submission.title or "",
                "properties": submission.properties or {},
                "url": submission.url or "",
                "language": submission.language or "",
                "by_hand": by_hand,
                "chunking": chunking,
                "created_at": now,
                "dispatched_at": now,
                "turn": WAITING,
                "tenant_queue": tenant_queue_of(collection, tenant),
                "priority": submission.priority,
                "previous_version": existing.live_version if existing else None,
                "corrections": carried(newest.corrections) if existing else None,
            }
            connection.execute(_ADD_VERSION, row)
            add_steps(connection, document_id, version)
            accepted = Accepted(document_id, version, fresh=True)
            batches.add(connection, submission.batch, collection, accepted, now)
            batches.add_within(connection, parent, collection, accepted, now)
            events.add(connection, "document.queued", document_id, version, now)
        return accepted

    def check_name(self, collection: str, name: str, *, tenant: str = "") -> None:
        """Raise NameTaken if a document that the reader may not read has this name."""
        with self._database.reading() as connection:
            values = {"collection": collection, "tenant": tenant, "named": name}
            named = connection.execute(_NAMED, values).one_or_none()
            if named is not None:
                self._check_readable(connection, named.document_id)

    def with_content(
        self, collection: str, sha256: str, *, but: str, tenant: str = ""
    ) -> list[str]:
        """The ids of documents with a name other than `but` that contain exactly these bytes."""
        with self._database.reading() as connection:
            return holders(connection, collection, tenant, sha256, self._reader, but=but)

    def duplicate(self, document_id: str) -> DuplicateContent:
        """The DuplicateContent error that names this document."""
        with self._database.reading() as connection:
            return duplicate(connection, document_id)

    def version(self, document_id: str, version: int) -> VersionRecord:
        """One version of a document. Raises DocumentNotFound if it does not exist."""
        with self._database.reading() as connection:
            row = connection.execute(
                versions_query().where(
                    _V.document_id == document_id, _V.version == version, readable(self._reader)
                )
            ).one_or_none()
        if row is None:
            raise no_version(document_id, version)
        return version_record(row, row)

    def artifact(self, document_id: str, version: int, step: Step) -> str | None:
        """The name of a step's artifact; None if the step is not done or has no artifact."""
        with self._database.reading() as connection:
            return connection.scalar(
                select(_S.artifact)
                .where(_S.document_id == document_id, _S.version == version, _S.step == step)
                .where(of_readable(_S.document_id, self._reader))
            )

    def get(self, document_id: str) -> DocumentRecord:
        """A document, deleted ones included. Raises DocumentNotFound if it does not exist."""
        records = self.get_all([document_id])
        if not records:
            raise DocumentNotFound(f"document {document_id!r} does not exist")
        return records[0]

    def get_all(self, document_ids: Iterable[str]) -> list[DocumentRecord]:
        """The documents of these ids that exist, deleted ones included."""
        return read_documents(self._database, document_ids, self._reader)

    def scopes(self, document_ids: Iterable[str]) -> set[tuple[str, str]]:
        """The collections and tenants of documents, deleted ones included."""
        named = _D.document_id.in_(list(document_ids))
        query = select(_D.collection, _D.tenant).where(named, readable(self._reader))
        with self._database.reading() as connection:
            return {(row.collection, row.tenant) for row in connection.execute(query)}

    def find(
        self,
        collection: str,
        *,
        tenant: str | None = None,
        tenants: Collection[str] | None = None,
        parent: str | None = None,
        limit: int = 100,
        before: float | None = None,
    ) -> list[DocumentRecord]:
        """List documents of a collection, newest first.

        Lists the documents of all tenants if `tenant` is None, or only those of `tenants` if it is
        set, and only the children of `parent` if it is set. `before` is the smallest creation time
        of the previous page.
        """
        query = (
            select(_D.document_id)
            .where(_D.collection == collection, _D.deleted_at.is_(None), readable(self._reader))
            .order_by(_D.created_at.desc(), _D.document_id)
            .limit(limit)
        )
        if tenant is not None:
            query = query.where(_D.tenant == tenant)
        if tenants is not None:
            query = query.where(_D.tenant.in_(list(tenants)))
        if parent is not None:
            query = query.where(_D.parent_id == parent)
        if before is not None:
            query = query.where(_D.created_at < before)
        with self._database.reading() as connection:
            ids = list(connection.scalars(query))
        return self.get_all(ids)

    def states(
        self, collection: str | None = None, *, tenants: Collection[str] | None = None
    ) -> dict[str, int]:
        """The number of documents by the state of their newest version: queued, failed or live.

        Counts those of one collection, if it is set, and of `tenants`, if they are set.
        """
        return read_states(self._database, collection, tenants, self._reader)

    def delete(self, document_id: str) -> None:
        """Hide a document and its child documents at once; the sweep removes their data later.

        Idempotent. Raises DocumentNotFound if the ledger has never had the document.
        """
        now = time.time()
        with self._database.writing() as connection:
            updated = connection.execute(
                update(schema.documents)
                .where(_D.document_id == document_id, readable(self._reader))
                .values(deleted_at=func.coalesce(_D.deleted_at, now))
            )
            if updated.rowcount == 0:
                raise DocumentNotFound(f"document {document_id!r} does not exist")
            withdraw(connection, _D.document_id == document_id, now)
            events.add_deleted(connection, _D.document_id == document_id, now)
            attachments.hide_below(connection, [document_id], now)

    def removing(self, before: Mapping[str, Mapping[str, int]]) -> None:
        """Record the counts of the data of deleted documents, by id, before their removal.

        The receipt of a document that another removal has finished meanwhile stays as it is.
        """
        rows = [{"of": i, "counts": {"before": dict(each)}} for i, each in sorted(before.items())]
        with self._database.writing() as connection:
            connection.execute(
                update(schema.documents)
                .where(_D.document_id == bindparam("of"), _D.removed_at.is_(None))
                .values(receipt=bindparam("counts", type_=JSON)),
                rows,
            )

    def removed(self, document_id: str, receipt: dict[str, Any]) -> None:
        """Record that a deleted document's data is removed, with the counts that prove it.

        Of two removals at the same moment the first one is recorded.
        """
        now = time.time()
        with self._database.writing() as connection:
            first = connection.execute(
                update(schema.documents)
                .where(_D.document_id == document_id, _D.removed_at.is_(None))
                .values(removed_at=now, receipt=receipt)
            )
            if not first.rowcount:
                return
            connection.execute(
                update(schema.versions)
                .where(_V.document_id == document_id)
                .values(corrections=None)  # they have text of the document
            )
            events.add(connection, "document.removed", document_id, None, now, data=receipt)

    def _check_readable(self, connection: Connection, document_id: str) -> None:
        """Raise NameTaken unless the reader may read the document whose name it sends."""
        query = select(_D.document_id).where(_D.document_id == document_id)
        if connection.scalar(query.where(readable(self._reader))) is None:
            raise NameTaken("the name is taken")


def _audience(
    connection: Connection,
    collection: str,
    tenant: str,
    submission: Submission,
    parent: Claim | None,
) -> str:
    """The audience of a new document: its parent's, or that of its submission; else everyone."""
    if parent is not None:
        return str(
            connection.scalar(select(_D.audience).where(_D.document_id == parent.document_id))
        )
    if submission.readers is None:
        return ""
    return put_audience(connection, collection, tenant, submission.readers)
