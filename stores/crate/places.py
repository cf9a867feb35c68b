"""Which collections and tenants there are, and where their chunks lie."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from callslip.errors import CollectionNotFound, InternalError, NotFound, StoreNotAllowed
from stores.crate.columns import TableColumns
from stores.crate.connection import ColumnMissing, Connection, RelationMissing, Sql
from stores.crate.tables import Layout, check_fits, check_name, table_name
from stores.records import CollectionSchema
from stores.schemas import check_made, check_tenant, dump_schema, load_schema, tenant_missing

T = TypeVar("T")

_COLLECTION = ""
"""The tenant of the row that stands for the collection itself."""


@dataclass(frozen=True)
class Place:
    """A collection, or one tenant of it."""

    schema: CollectionSchema
    tenant: str
    name: str
    """Of the table of chunks, unquoted."""

    table: str
    """Of the table of chunks, in SQL."""

    columns: TableColumns

    key: ClassVar[str] = "chunk_id"
    """The column that names a row."""

    @property
    def missing(self) -> NotFound:
        """What is raised where the table does not exist."""
        if self.tenant:
            return tenant_missing(self.schema.name, self.tenant)
        return _no_collection(self.schema.name)


class Places:
    """Reads the table of collections once for each, and again when that turns out to be old."""

    def __init__(self, connection: Connection, layout: Layout) -> None:
        self._connection = connection
        self._layout = layout
        self._lock = threading.Lock()
        self._known: dict[str, CollectionSchema] = {}
        self._places: dict[tuple[str, str], Place] = {}

    def create(self, schema: CollectionSchema) -> None:
        """Make a collection where it is missing; Conflict where it was made otherwise."""
        check_fits(schema)
        self._make_our_tables()
        self._register(schema, _COLLECTION)
        check_made(self.fresh(schema.name), schema)
        if not schema.tenants:
            self._connection.run(Sql(self._layout.chunks(table_name(schema, ""), schema)))

    def create_tenant(self, collection: str, tenant: str) -> None:
        """Make a tenant where it is missing."""
        schema = self.fresh(collection)
        check_tenant(schema, tenant)
        check_name(tenant)
        self._register(schema, tenant)
        self._connection.run(Sql(self._layout.chunks(table_name(schema, tenant), schema)))

    def drop(self, collection: str) -> None:
        """Remove a collection with all tenants. Idempotent."""
        try:
            schema = self.fresh(collection)
        except CollectionNotFound:
            return
        for tenant in [*self.tenants(collection), _COLLECTION]:
            self._drop(schema, tenant)
        self.forget(collection)

    def drop_tenant(self, collection: str, tenant: str) -> None:
        """Remove a tenant. Idempotent."""
        schema = self.fresh(collection)
        check_tenant(schema, tenant)
        self._drop(schema, tenant)

    def collections(self) -> list[str]:
        """The names of all collections, in order."""
        wanted = f'SELECT "collection" FROM {self._layout.collections} WHERE "tenant" = ?'
        return sorted(name for (name,) in self._read(Sql(wanted, (_COLLECTION,))))

    def tenants(self, collection: str) -> list[str]:
        """The names of a collection's tenants, in order."""
        self.fresh(collection)
        wanted = f'SELECT "tenant" FROM {self._layout.collections} WHERE "collection" = ?'
        found = self._connection.run(Sql(wanted, (collection,)))
        return sorted(tenant for (tenant,) in found if tenant != _COLLECTION)

    def schema(self, collection: str) -> CollectionSchema:
        """The schema that a collection was made with."""
        with self._lock:
            known = self._known.get(collection)
        return known or self.fresh(collection)

    def fresh(self, collection: str) -> CollectionSchema:
        """The schema, read anew."""
        definition = self._definition(collection, _COLLECTION)
        if definition is None:
            self.forget(collection)
            raise _no_collection(collection)
        schema = load_schema(definition)
        with self._lock:
            if self._known.get(collection) != schema:
                self._known[collection] = schema
        return schema

    def forget(self, collection: str) -> None:
        """Read the collection anew at its next use."""
        with self._lock:
            self._known.pop(collection, None)
            for at in [at for at in self._places if at[0] == collection]:
                del self._places[at]

    def at(self, collection: str, tenant: str) -> Place:
        """The place, as far as is known; whether its table exists shows when it is used."""
        schema = self.schema(collection)
        check_tenant(schema, tenant)
        with self._lock:
            place = self._places.get((collection, tenant))
            if place is None or place.schema != schema:
                name = table_name(schema, tenant)
                columns = TableColumns(self._connection, self._layout.schema, name)
                table = self._layout.qualified(name)
                place = Place(schema, tenant, name, table, columns)
                self._places[collection, tenant] = place
            return place

    def existing(self, collection: str, tenant: str) -> Place:
        """The place, looked up anew; NotFound where it does not exist."""
        self.fresh(collection)
        place = self.at(collection, tenant)
        if tenant and self._definition(collection, tenant) is None:
            raise place.missing
        return place

    def on(self, collection: str, tenant: str, act: Callable[[Place], T]) -> T:
        """Do something at a place; once more where another process has changed it meanwhile."""
        for _ in range(2):
            place = self.at(collection, tenant)
            try:
                return act(place)
            except RelationMissing:
                problem: Exception = place.missing
            except ColumnMissing:
                problem = InternalError(f"A table of collection {collection} lacks a column.")
            self.forget(collection)
        raise problem

    def _definition(self, collection: str, tenant: str) -> str | None:
        wanted = (
            f'SELECT "definition" FROM {self._layout.collections}'
            ' WHERE "collection" = ? AND "tenant" = ?'
        )
        rows = self._read(Sql(wanted, (collection, tenant)))
        return str(rows[0][0]) if rows else None

    def _read(self, sql: Sql) -> list[list[Any]]:
        """Read the table of collections.

        A cluster that starts knows no table for a moment, and then must not look like one without
        any collection. Making a table waits until it knows. A user who may make none, for whom
        tables of others are attached alone, has no collection.
        """
        try:
            return self._connection.run(sql)
        except RelationMissing:
            try:
                self._make_our_tables()
            except StoreNotAllowed:
                return []
            return self._connection.run(sql)

    def _make_our_tables(self) -> None:
        """Make them where they are missing; StoreNotAllowed where the user may make none.

        CrateDB tells such a user that the schema is unknown.
        """
        try:
            for statement in self._layout.our_tables():
                self._connection.run(Sql(statement))
        except RelationMissing:
            raise StoreNotAllowed(
                f"crate.user may make no table in the schema {self._layout.schema!r}."
            ) from None

    def _register(self, schema: CollectionSchema, tenant: str) -> None:
        """Write the row of a collection or a tenant unless there is one."""
        insert = (
            f'INSERT INTO {self._layout.collections} ("collection", "tenant", "table_name",'
            ' "definition") VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING'
        )
        row = (schema.name, tenant, table_name(schema, tenant), dump_schema(schema))
        self._connection.run(Sql(insert, row))
        self._connection.run(Sql(f"REFRESH TABLE {self._layout.collections}"))

    def _drop(self, schema: CollectionSchema, tenant: str) -> None:
        """The row goes last, so that what is interrupted can be repeated."""
        name, layout = table_name(schema, tenant), self._layout
        for sql in (
            Sql(f"DROP TABLE IF EXISTS {layout.qualified(name)}"),
            Sql(f'DELETE FROM {layout.documents} WHERE "table_name" = ?', (name,)),
            Sql(
                f'DELETE FROM {layout.collections} WHERE "collection" = ? AND "tenant" = ?',
                (schema.name, tenant),
            ),
            Sql(f"REFRESH TABLE {layout.documents}, {layout.collections}"),
        ):
            self._connection.run(sql)


def _no_collection(collection: str) -> CollectionNotFound:
    return CollectionNotFound(f"Collection {collection} does not exist.")
