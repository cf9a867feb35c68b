"""Creates, lists and drops collections and tenants in CrateDB, and resolves their tables."""

import threading
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from callslip.errors import (
    CollectionNotFound,
    InternalError,
    NotFound,
    StoreDown,
    StoreNotAllowed,
)
from callslip.stores.crate.columns import TableColumns
from callslip.stores.crate.connection import ColumnMissing, Connection, RelationMissing, Sql
from callslip.stores.crate.tables import Layout, check_fits, check_name, table_name, upsert
from callslip.stores.records import CollectionSchema
from callslip.stores.schemas import (
    check_made,
    check_tenant,
    dump_schema,
    load_schema,
    tenant_missing,
)
from callslip.stores.servers.absence import believed

T = TypeVar("T")

_COLLECTION = ""
"""The tenant in the row of the collection itself."""


@dataclass(frozen=True)
class Scope:
    """A collection, or one tenant of it."""

    schema: CollectionSchema
    tenant: str
    name: str
    """The name of the table of chunks, unquoted."""

    table: str
    """The qualified name of the table of chunks, quoted for SQL."""

    columns: TableColumns

    key: ClassVar[str] = "chunk_id"
    """The column with the id of a chunk."""

    @property
    def missing(self) -> NotFound:
        """The error to raise if the table does not exist."""
        if self.tenant:
            return tenant_missing(self.schema.name, self.tenant)
        return _no_collection(self.schema.name)


class Catalog:
    """The collections in one CrateDB schema.

    It caches what it reads until an error shows that the cache is out of date.
    """

    def __init__(self, connection: Connection, layout: Layout) -> None:
        self._connection = connection
        self._layout = layout
        self._lock = threading.Lock()
        self._known: dict[str, CollectionSchema] = {}
        self._scopes: dict[tuple[str, str], Scope] = {}

    def create_collection(self, schema: CollectionSchema) -> None:
        """Create a collection if it is missing.

        Raises Conflict if it exists with another schema.
        """
        check_fits(schema)
        self._make_our_tables()
        self._register(schema, _COLLECTION)
        check_made(self.fresh(schema.name), schema)
        if not schema.tenants:
            self._connection.run(Sql(self._layout.chunks(table_name(schema, ""), schema)))

    def probe(self) -> None:
        """Write a row into a table of its own and read it back. Raises StoreDown.

        A user without the right to create tables, for whom only attached tables are used, writes
        nothing.
        """
        table, mark = self._layout.qualified("probe"), uuid.uuid4().hex
        try:
            self._connection.run(Sql(self._layout.probe()))
        except (RelationMissing, StoreNotAllowed):
            return
        self._connection.run(Sql(upsert(table, ("id", "mark"), "id"), ("probe", mark)))
        read = Sql(f'SELECT "mark" FROM {table} WHERE "id" = ?', ("probe",))
        if self._connection.run(read) != [[mark]]:
            raise StoreDown("CrateDB gives back another row than was written.")

    def create_tenant(self, collection: str, tenant: str) -> None:
        """Create a tenant if it is missing."""
        schema = self.fresh(collection)
        check_tenant(schema, tenant)
        check_name(tenant)
        self._register(schema, tenant)
        self._connection.run(Sql(self._layout.chunks(table_name(schema, tenant), schema)))

    def drop_collection(self, collection: str) -> None:
        """Delete a collection with all its tenants. Idempotent."""
        try:
            schema = self.fresh(collection)
        except CollectionNotFound:
            return
        for tenant in [*self.tenants(collection), _COLLECTION]:
            self._drop(schema, tenant)
        self.forget(collection)

    def drop_tenant(self, collection: str, tenant: str) -> None:
        """Delete a tenant: its table of chunks, its documents, its row in the catalog.

        Idempotent.
        """
        schema = self.fresh(collection)
        check_tenant(schema, tenant)
        self._drop(schema, tenant)

    def collections(self) -> list[str]:
        """The names of all collections, sorted."""
        wanted = f'SELECT "collection" FROM {self._layout.collections} WHERE "tenant" = ?'
        return sorted(name for (name,) in self._read(Sql(wanted, (_COLLECTION,))))

    def tenants(self, collection: str) -> list[str]:
        """The names of a collection's tenants, sorted."""
        self.fresh(collection)
        wanted = f'SELECT "tenant" FROM {self._layout.collections} WHERE "collection" = ?'
        rows = self._connection.run(Sql(wanted, (collection,)))
        return sorted(tenant for (tenant,) in rows if tenant != _COLLECTION)

    def schema(self, collection: str) -> CollectionSchema:
        """The schema with which the collection was created, from the cache if possible."""
        with self._lock:
            known = self._known.get(collection)
        return known or self.fresh(collection)

    def fresh(self, collection: str) -> CollectionSchema:
        """The schema, read from the database. Raises CollectionNotFound."""
        schema = load_schema(self._existing(collection, _COLLECTION, _no_collection(collection)))
        with self._lock:
            if self._known.get(collection) != schema:
                self._known[collection] = schema
        return schema

    def forget(self, collection: str) -> None:
        """Remove the collection from the cache."""
        with self._lock:
            self._known.pop(collection, None)
            for at in [at for at in self._scopes if at[0] == collection]:
                del self._scopes[at]

    def at(self, collection: str, tenant: str) -> Scope:
        """The scope, from the cache if possible. It does not check whether the table exists."""
        schema = self.schema(collection)
        check_tenant(schema, tenant)
        with self._lock:
            scope = self._scopes.get((collection, tenant))
            if scope is None or scope.schema != schema:
                name = table_name(schema, tenant)
                columns = TableColumns(self._connection, self._layout.schema, name)
                table = self._layout.qualified(name)
                scope = Scope(schema, tenant, name, table, columns)
                self._scopes[collection, tenant] = scope
            return scope

    def existing(self, collection: str, tenant: str) -> Scope:
        """The scope, checked against the database. Raises NotFound if it does not exist."""
        self.fresh(collection)
        scope = self.at(collection, tenant)
        if tenant:
            self._existing(collection, tenant, scope.missing)
        return scope

    def on(self, collection: str, tenant: str, act: Callable[[Scope], T]) -> T:
        """Call `act` with the scope, and once more if another process has changed the table."""

        def ask() -> T:
            for _ in range(2):
                scope = self.at(collection, tenant)
                try:
                    return act(scope)
                except RelationMissing:
                    problem: Exception = scope.missing
                except ColumnMissing:
                    problem = InternalError(f"A table of collection {collection} lacks a column.")
                self.forget(collection)
            raise problem

        return believed(ask, self._ready)

    def _ready(self) -> None:
        """Raise StoreDown unless the cluster knows its tables: until then no table is created."""
        self._connection.ping()
        with suppress(StoreNotAllowed):
            self._make_our_tables()

    def _existing(self, collection: str, tenant: str, missing: NotFound) -> str:
        """The definition of a collection or a tenant; raises `missing` if there is none."""

        def ask() -> str:
            definition = self._definition(collection, tenant)
            if definition is None:
                self.forget(collection)
                raise missing
            return definition

        return believed(ask, self._ready)

    def _definition(self, collection: str, tenant: str) -> str | None:
        wanted = (
            f'SELECT "definition" FROM {self._layout.collections}'
            ' WHERE "collection" = ? AND "tenant" = ?'
        )
        rows = self._read(Sql(wanted, (collection, tenant)))
        return str(rows[0][0]) if rows else None

    def _read(self, sql: Sql) -> list[list[Any]]:
        """Run a query on the table of collections.

        While a cluster starts, it knows no tables for a moment, which must not look like a cluster
        without collections; creating a table waits until the cluster knows its tables. A user
        without the right to create tables, for whom only attached tables are used, has no
        collection.
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
        """Create the catalog's tables if they are missing.

        Raises StoreNotAllowed if the user has no right to create them; to such a user CrateDB
        reports an unknown schema.
        """
        try:
            for statement in self._layout.our_tables():
                self._connection.run(Sql(statement))
        except RelationMissing:
            raise StoreNotAllowed(
                f"crate.user may make no table in the schema {self._layout.schema!r}."
            ) from None

    def _register(self, schema: CollectionSchema, tenant: str) -> None:
        """Insert the row of a collection or a tenant if it is missing."""
        insert = (
            f'INSERT INTO {self._layout.collections} ("collection", "tenant", "table_name",'
            ' "definition") VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING'
        )
        row = (schema.name, tenant, table_name(schema, tenant), dump_schema(schema))
        self._connection.run(Sql(insert, row))
        self._connection.run(Sql(f"REFRESH TABLE {self._layout.collections}"))

    def _drop(self, schema: CollectionSchema, tenant: str) -> None:
        """Drop one scope. Its row is deleted last, so that an interrupted drop can be repeated."""
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
