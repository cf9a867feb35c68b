"""Collections in the ledger."""

import json
import time
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import IntegrityError

from callslip.errors import CollectionExists, CollectionNotFound
from callslip.messages.options import USUAL, Options
from callslip.readers import Reader
from callslip.stores.ledger.base import schema
from callslip.stores.ledger.base.attached import read_only
from callslip.stores.ledger.base.database import Database
from callslip.stores.ledger.base.fair_queue import withdraw
from callslip.stores.ledger.base.memory_tables import forget_scope
from callslip.stores.ledger.base.readable import readable
from callslip.stores.ledger.base.records import Attachment, CollectionRecord
from callslip.stores.ledger.outbox import events
from callslip.stores.ledger.sources.sources import drop_sources
from callslip.stores.records import CollectionSchema
from callslip.stores.schemas import check_made, dump_schema, load_schema
from callslip.stores.sides import kind_of

_C, _D, _P = schema.collections.c, schema.documents.c, schema.property_names.c
_A = schema.attachments.c
_OF_TABLE = (_A.table_schema, _A.table_name, _A.vectors, _A.server, _A.tenant)
_RECORD = (_C.name, _C.store, _C.embedder, _C.schema, _C.analyzer, _C.options, _C.created_at)
_WITH_TABLE = schema.collections.outerjoin(schema.attachments)
# Each search executes these two: building a statement costs more than running it.
_NAMED = (
    select(*_RECORD, *_OF_TABLE)
    .select_from(_WITH_TABLE)
    .where(_C.name == bindparam("of"), _C.deleted_at.is_(None))
)
_PROPERTY_NAMES = select(_P.name).where(_P.collection == bindparam("of"))

PER_TRANSACTION = 20
"""Documents whose rows one transaction deletes; workers wait for SQLite's write lock meanwhile."""


class Collections:
    """Creates, finds and deletes collections."""

    def __init__(self, database: Database, reader: Reader | None = None) -> None:
        self._database, self._reader = database, reader

    def create(
        self,
        wanted: CollectionSchema,
        *,
        store: str,
        embedder: str,
        analyzer: str,
        options: Options | None = None,
        attachment: Attachment | None = None,
    ) -> tuple[CollectionRecord, bool]:
        """Create a collection; the second value says whether it is new.

        A repeated call returns the same collection. Raises CollectionExists if the collection
        exists with other settings, or while one of this name is being removed.
        """
        name = wanted.name
        chosen = options or USUAL
        record = CollectionRecord(
            name, store, embedder, wanted, analyzer, time.time(), chosen, attachment
        )
        row = {**record.__dict__, "schema": json.loads(dump_schema(wanted))}
        del row["attachment"]
        try:
            with self._database.writing() as connection:
                connection.execute(
                    insert(schema.collections).values(**row | {"options": _dump(chosen)})
                )
                if attachment:
                    connection.execute(
                        insert(schema.attachments).values(collection=name, **attachment.__dict__)
                    )
        except IntegrityError:
            try:
                existing = self.get(name)
            except CollectionNotFound:
                raise CollectionExists(
                    f"collection {name!r} is being removed", hint="Try again in a moment."
                ) from None
            if existing.attachment != attachment:
                raise CollectionExists(
                    f"collection {name!r} exists and is not attached to this table like this"
                    if attachment
                    else f"collection {name!r} is attached to a table"
                ) from None
            same_store = kind_of(existing.store) == kind_of(store)
            if not same_store or existing.embedder != embedder:
                raise CollectionExists(
                    f"collection {name!r} exists with store {kind_of(existing.store)!r}"
                    f" and embedder {existing.embedder!r}",
                    hint=f"`callslip migrate {name} --to {store}` moves it to another store."
                    if not same_store
                    else None,
                ) from None
            check_made(existing.schema, wanted)
            if options not in (None, existing.options):
                raise CollectionExists(
                    f"collection {name!r} exists with other options",
                    hint=f"PUT /v1/collections/{name}/options changes them.",
                ) from None
            return existing, False
        return record, True

    def get(self, name: str) -> CollectionRecord:
        """The collection with this name. Raises CollectionNotFound."""
        with self._database.reading() as connection:
            row = connection.execute(_NAMED, {"of": name}).one_or_none()
        if row is None:
            raise CollectionNotFound(f"collection {name!r} does not exist")
        return _record(row)

    def writable(self, name: str) -> CollectionRecord:
        """As `get`, but raises AttachedReadOnly if the collection is an attached table."""
        record = self.get(name)
        if record.attached:
            raise read_only(name)
        return record

    def is_attached(self, name: str) -> bool:
        """Whether the collection is an attached table, even if a deletion has just hidden it."""
        with self._database.reading() as connection:
            attached = select(_A.collection).where(_A.collection == name)
            return connection.scalar(attached) is not None

    def move_attachment(self, name: str, attachment: Attachment) -> None:
        """Record another server and tenant of an attached collection."""
        with self._database.writing() as connection:
            connection.execute(
                update(schema.attachments)
                .where(_A.collection == name)
                .values(server=attachment.server, tenant=attachment.tenant)
            )

    def set_options(self, name: str, options: Options) -> None:
        """Replace the collection's options, for all steps that begin from now on.

        Raises CollectionNotFound.
        """
        with self._database.writing() as connection:
            updated = connection.execute(
                update(schema.collections)
                .where(_C.name == name, _C.deleted_at.is_(None))
                .values(options=_dump(options))
            )
        if updated.rowcount == 0:
            raise CollectionNotFound(f"collection {name!r} does not exist")

    def all(
        self, *, names: Iterable[str] | None = None, tenants: Iterable[str] | None = None
    ) -> list[tuple[CollectionRecord, int]]:
        """Every collection, or those of `names`, with the number of its live documents, by name.

        With `tenants`, only their documents count.
        """
        counted = select(_D.collection, func.count().label("live")).where(
            _D.deleted_at.is_(None), _D.live_version.is_not(None), readable(self._reader)
        )
        if tenants is not None:
            counted = counted.where(_D.tenant.in_(list(tenants)))
        live = counted.group_by(_D.collection).subquery()
        query = (
            select(*_RECORD, *_OF_TABLE, func.coalesce(live.c.live, 0).label("live"))
            .select_from(_WITH_TABLE.outerjoin(live, live.c.collection == _C.name))
            .where(_C.deleted_at.is_(None))
            .order_by(_C.name)
        )
        if names is not None:
            query = query.where(_C.name.in_(list(names)))
        with self._database.reading() as connection:
            rows = connection.execute(query).all()
        return [(_record(row), row.live) for row in rows]

    def delete(self, name: str) -> None:
        """Hide a collection and its documents at once. Raises CollectionNotFound.

        The caller calls `forget` when no store has the documents any more.
        """
        now = time.time()
        with self._database.writing() as connection:
            updated = connection.execute(
                update(schema.collections)
                .where(_C.name == name, _C.deleted_at.is_(None))
                .values(deleted_at=now)
            )
            if updated.rowcount == 0:
                raise CollectionNotFound(f"collection {name!r} does not exist")
            connection.execute(
                update(schema.documents)
                .where(_D.collection == name, _D.deleted_at.is_(None))
                .values(deleted_at=now)
            )
            withdraw(connection, _D.collection == name, now)
            events.add_deleted(connection, _D.collection == name, now)
            drop_sources(connection, schema.sources.c.collection == name)

    def has_properties(self, name: str, properties: Iterable[str]) -> None:
        """Record which properties the chunks of a collection have. Idempotent.

        Raises CollectionNotFound if the collection has been removed meanwhile.
        """
        new = set(properties) - self.property_names(name)
        if not new:
            return
        rows = [{"collection": name, "name": n} for n in sorted(new)]
        try:
            with self._database.writing() as connection:
                adding = sqlite.insert if self._database.is_sqlite else postgresql.insert
                connection.execute(adding(schema.property_names).on_conflict_do_nothing(), rows)
        except IntegrityError:  # of the foreign key
            raise CollectionNotFound(f"collection {name!r} does not exist") from None

    def property_names(self, name: str) -> set[str]:
        """Every property that a chunk of the collection ever had."""
        with self._database.reading() as connection:
            return set(connection.scalars(_PROPERTY_NAMES, {"of": name}))

    def deleted(self) -> list[str]:
        """Names of collections that are hidden and whose rows are not deleted yet."""
        with self._database.reading() as connection:
            return list(connection.scalars(select(_C.name).where(_C.deleted_at.is_not(None))))

    def document_ids(self, name: str) -> list[str]:
        """Ids of all documents of a collection, deleted ones included."""
        with self._database.reading() as connection:
            return list(connection.scalars(select(_D.document_id).where(_D.collection == name)))

    def forget(self, name: str) -> None:
        """Delete every row of a deleted collection. The name is then free.

        Some documents go in each transaction, so that others can write between two of them. A
        collection that was created again under this name is not changed.
        """
        documents = select(_D.document_id).where(_D.collection == name).limit(PER_TRANSACTION)
        while True:
            with self._database.writing() as connection:
                if not _is_deleted(connection, name):
                    return
                ids = list(connection.scalars(documents))
                _drop_documents(connection, ids)
                if len(ids) < PER_TRANSACTION:
                    _drop_rest(connection, name)
                    return


def _is_deleted(connection: Connection, name: str) -> bool:
    """Whether the collection is hidden, and its rows are not deleted; locks it in that state."""
    query = select(_C.name).where(_C.name == name, _C.deleted_at.is_not(None))
    return connection.scalar(query.with_for_update()) is not None


def _drop_documents(connection: Connection, ids: Sequence[str]) -> None:
    """Delete every row of these documents, and the cached vectors of their texts."""
    hashes = select(schema.chunks.c.text_hash).where(schema.chunks.c.document_id.in_(ids))
    for cache in (schema.vectors, schema.token_vectors):
        connection.execute(delete(cache).where(cache.c.text_hash.in_(hashes)))
    for table in (schema.chunks, schema.steps, schema.versions, schema.documents):
        connection.execute(delete(table).where(table.c.document_id.in_(ids)))


def _drop_rest(connection: Connection, name: str) -> None:
    """Delete the rows of a collection that has no documents any more."""
    for table in (
        *(schema.tenants, schema.property_names, schema.copies, schema.moves),
        *(schema.attachments, schema.audiences),
    ):
        connection.execute(delete(table).where(table.c.collection == name))
    forget_scope(connection, name)
    connection.execute(delete(schema.collections).where(_C.name == name))


def _record(row: Any) -> CollectionRecord:
    return CollectionRecord(
        name=row.name,
        store=row.store,
        embedder=row.embedder,
        schema=load_schema(json.dumps(row.schema)),
        analyzer=row.analyzer,
        created_at=row.created_at,
        options=Options.model_validate(row.options),
        attachment=row.table_name
        and Attachment(row.table_schema, row.table_name, row.vectors, row.server, row.tenant),
    )


def _dump(options: Options) -> dict[str, Any]:
    return options.model_dump(mode="json", exclude_defaults=True)
