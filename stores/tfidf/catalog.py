"""Collections and tenants of the TF-IDF store: creates, lists and drops them with their folders.

Folders have random names that are never used again: a process that still writes into a dropped
collection cannot change a collection that is created later.
"""

import re
import secrets
import shutil
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock

from callslip.errors import CollectionNotFound, StoreDown, StoreReadOnly
from callslip.stores.records import CollectionSchema
from callslip.stores.schemas import (
    check_made,
    check_tenant,
    dump_schema,
    load_schema,
    tenant_missing,
)
from callslip.stores.tfidf.database import Database

_TABLES = """
CREATE TABLE IF NOT EXISTS collections (name TEXT PRIMARY KEY, schema TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS places (
    collection TEXT NOT NULL, tenant TEXT NOT NULL, folder TEXT NOT NULL,
    PRIMARY KEY (collection, tenant)
) WITHOUT ROWID;
"""


_NAME_BYTES = 8
_NAME = re.compile(f"[0-9a-f]{{{2 * _NAME_BYTES}}}")
"""The pattern of the folders' names: `Catalog.sweep` removes no other folder."""


class Catalog:
    """The collections in one folder.

    `make` creates an empty partition; its arguments are a new folder and the collection's name.
    """

    def __init__(self, root: Path, make: Callable[[Path, str], None]) -> None:
        self._root = root
        self._make = make
        self._file = root / "catalog.db"
        self._opened: Database | None = None
        self._lock = threading.Lock()

    def ensure(self, schema: CollectionSchema) -> None:
        """Create the collection if it is missing. Raises Conflict if it has another schema."""
        with self._database().reading() as connection:
            missing = _schema(connection, schema.name) is None
        if missing:
            with self._database().writing() as connection:
                connection.execute(
                    "INSERT OR IGNORE INTO collections VALUES (?, ?)",
                    (schema.name, dump_schema(schema)),
                )
                made = self._required(connection, schema.name)
                if not made.tenants:
                    self._ensure_partition(connection, schema.name, "")
        check_made(self.schema(schema.name), schema)

    def ensure_tenant(self, collection: str, tenant: str) -> None:
        """Create the tenant if it is missing."""
        with self._database().writing() as connection:
            check_tenant(self._required(connection, collection), tenant)
            self._ensure_partition(connection, collection, tenant)

    def schema(self, collection: str) -> CollectionSchema:
        """The collection's schema. Raises CollectionNotFound."""
        with self._database().reading() as connection:
            return self._required(connection, collection)

    def names(self) -> list[str]:
        """The names of all collections, sorted."""
        with self._database().reading() as connection:
            return sorted(name for (name,) in connection.execute("SELECT name FROM collections"))

    def tenants(self, collection: str) -> list[str]:
        """The collection's tenants, sorted; `[""]` for a collection without tenants."""
        with self._database().reading() as connection:
            self._required(connection, collection)
            rows = connection.execute(
                "SELECT tenant FROM places WHERE collection = ?", (collection,)
            )
            return sorted(tenant for (tenant,) in rows)

    def probe(self) -> None:
        """Write a row and read it back. Raises StoreDown."""
        mark = secrets.token_hex(_NAME_BYTES)
        with self._database().writing() as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS probe (id INTEGER PRIMARY KEY, mark)")
            connection.execute("INSERT OR REPLACE INTO probe VALUES (1, ?)", (mark,))
        with self._database().reading() as connection:
            if connection.execute("SELECT mark FROM probe").fetchone() != (mark,):
                raise StoreDown("The TF-IDF store gives back another row than was written.")

    def find(self, collection: str, tenant: str) -> tuple[CollectionSchema, Path]:
        """The schema and the folder of a collection or tenant.

        Raises CollectionNotFound, TenantNotFound or InvalidRequest.
        """
        with self._database().reading() as connection:
            schema = self._required(connection, collection)
            check_tenant(schema, tenant)
            row = _folder(connection, collection, tenant)
            if row is None:
                raise tenant_missing(collection, tenant)
            return schema, self._root / row

    def drop(self, collection: str, tenant: str | None = None) -> None:
        """Remove the collection, or one tenant of it, with its folders. Idempotent."""
        with self._database().writing() as connection:
            if tenant is None:
                connection.execute("DELETE FROM collections WHERE name = ?", (collection,))
            else:
                check_tenant(self._required(connection, collection), tenant)
            gone = connection.execute(
                "DELETE FROM places WHERE collection = ? AND tenant = coalesce(?, tenant)"
                " RETURNING folder",
                (collection, tenant),
            ).fetchall()
        for (folder,) in gone:
            shutil.rmtree(self._root / folder, ignore_errors=True)

    def sweep(self) -> None:
        """Remove folders that are not in the catalog: a crash can leave them."""
        with self._database().writing() as connection:
            known = {folder for (folder,) in connection.execute("SELECT folder FROM places")}
            for path in self._root.iterdir():
                if _NAME.fullmatch(path.name) and path.name not in known:
                    shutil.rmtree(path, ignore_errors=True)

    def close(self) -> None:
        """Close connections."""
        with self._lock:
            if self._opened:
                self._opened.close()
                self._opened = None

    def _database(self) -> Database:
        with self._lock:
            if self._opened is None:
                self._opened = self._open()
            return self._opened

    def _open(self) -> Database:
        database = Database(self._file, "the catalog of the TF-IDF store")
        if self._file.exists() and _is_made(database):
            return database
        try:
            self._root.mkdir(parents=True, exist_ok=True)
            with FileLock(self._root / "catalog.lock"):
                database.create(_TABLES)
        except OSError as error:
            raise StoreReadOnly(
                f"The TF-IDF store cannot make its folder ({type(error).__name__})."
            ) from error
        return database

    def _ensure_partition(
        self, connection: sqlite3.Connection, collection: str, tenant: str
    ) -> None:
        if _folder(connection, collection, tenant) is not None:
            return
        folder = secrets.token_hex(_NAME_BYTES)
        self._make(self._root / folder, collection)
        connection.execute("INSERT INTO places VALUES (?, ?, ?)", (collection, tenant, folder))

    def _required(self, connection: sqlite3.Connection, collection: str) -> CollectionSchema:
        schema = _schema(connection, collection)
        if schema is None:
            raise CollectionNotFound(f"Collection {collection} does not exist.")
        return schema


def _is_made(database: Database) -> bool:
    with database.reading() as connection:
        rows = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'places'")
        return rows.fetchone() is not None


def _schema(connection: sqlite3.Connection, collection: str) -> CollectionSchema | None:
    row = connection.execute(
        "SELECT schema FROM collections WHERE name = ?", (collection,)
    ).fetchone()
    return load_schema(row[0]) if row else None


def _folder(connection: sqlite3.Connection, collection: str, tenant: str) -> str | None:
    row = connection.execute(
        "SELECT folder FROM places WHERE collection = ? AND tenant = ?", (collection, tenant)
    ).fetchone()
    return row[0] if row else None
