"""The tables: one of chunks for each collection or tenant, one of collections, one of documents.

The first seven columns of a table of chunks are those of CrateDB's hybrid search specification, so
that other programs can read the table.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from callslip.errors import InvalidRequest
from callslip.stores.crate.columns import MAX_COLUMNS, definition
from callslip.stores.records import CollectionSchema
from callslip.stores.schemas import dump_schema

MAX_DIMENSION = 2048
"""The greatest dimension of a FLOAT_VECTOR."""

MAX_NAME_BYTES = 1000
"""The most bytes in the name of a collection or a tenant; both names form one key."""

_TEXT_TO_READ = "TEXT INDEX OFF STORAGE WITH (columnstore = FALSE)"
"""The type of a text of any length that is never searched."""

_SPECIFIED = (
    ("hierarchy", "TEXT"),
    ("title_fs", "TEXT INDEX USING FULLTEXT WITH (analyzer = 'standard') NOT NULL"),
    ("content_fs", "TEXT INDEX USING FULLTEXT WITH (analyzer = 'standard') NOT NULL"),
    ("content_pretty", _TEXT_TO_READ),
    ("ref", "TEXT"),
    ("xs", "FLOAT_VECTOR({dimension}) NOT NULL"),
    ("metadata", "OBJECT(DYNAMIC) AS ({metadata})"),
)

_OURS = (
    ("chunk_id", "TEXT PRIMARY KEY"),
    ("document_id", "TEXT NOT NULL"),
    ("tenant", "TEXT"),
    ("parent_id", "TEXT"),
    ("level", "BIGINT"),
    ("ordinal", "BIGINT"),
    ("span_start", "BIGINT"),
    ("span_end", "BIGINT"),
    ("valid_from", "TIMESTAMP WITH TIME ZONE"),
    ("valid_to", "TIMESTAMP WITH TIME ZONE"),
    ("terms", "TEXT INDEX USING FULLTEXT WITH (analyzer = 'whitespace') NOT NULL"),
    ("vectors", _TEXT_TO_READ),
    ("record", _TEXT_TO_READ),
)

COLUMNS = tuple(name for name, _ in (*_SPECIFIED, *_OURS))
"""The columns of a table of chunks; the columns of named vectors follow."""


@dataclass(frozen=True)
class Layout:
    """The CrateDB schema of the tables, and the shards and replicas with which they are created."""

    schema: str
    shards: int
    replicas: str

    @property
    def collections(self) -> str:
        """The table of collections and tenants with their definitions."""
        return self.qualified("collections")

    @property
    def documents(self) -> str:
        """The table of the documents of all collections."""
        return self.qualified("documents")

    def qualified(self, table: str) -> str:
        """The qualified name of a table, quoted for SQL."""
        return f'"{self.schema}"."{table}"'

    def our_tables(self) -> list[str]:
        """The statements that create the tables of collections and of documents if missing."""
        end = f"CLUSTERED INTO 1 SHARDS WITH (number_of_replicas = '{self.replicas}')"
        return [
            f'CREATE TABLE IF NOT EXISTS {self.collections} ("collection" TEXT, "tenant" TEXT,'
            f' "table_name" TEXT, "definition" {_TEXT_TO_READ},'
            f' PRIMARY KEY ("collection", "tenant")) {end}',
            f'CREATE TABLE IF NOT EXISTS {self.documents} ("id" TEXT PRIMARY KEY,'
            f' "table_name" TEXT, "document_id" TEXT, "record" {_TEXT_TO_READ}) {end}',
        ]

    def probe(self) -> str:
        """The statement that creates the table of a probe if it is missing."""
        return (
            f'CREATE TABLE IF NOT EXISTS {self.qualified("probe")} ("id" TEXT PRIMARY KEY,'
            f" \"mark\" TEXT) CLUSTERED INTO 1 SHARDS WITH (number_of_replicas = '{self.replicas}')"
        )

    def chunks(self, table: str, schema: CollectionSchema) -> str:
        """The statement that creates a table of chunks if it is missing."""
        columns = [f'"{name}" {type_}' for name, type_ in (*_SPECIFIED, *_OURS)]
        columns += [
            f'"{vector_column(schema, name)}" FLOAT_VECTOR({spec.dimension})'
            for name, spec in sorted(schema.named.items())
        ]
        text = ", ".join(columns).format(dimension=schema.default.dimension, metadata=definition())
        return (
            f"CREATE TABLE IF NOT EXISTS {self.qualified(table)} ({text})"
            f" CLUSTERED INTO {self.shards} SHARDS WITH"
            f" (number_of_replicas = '{self.replicas}',"
            f' "mapping.total_fields.limit" = {MAX_COLUMNS})'
        )


def upsert(table: str, columns: Sequence[str], key: str) -> str:
    """The statement that inserts a row, or replaces the whole row with the same key."""
    names = ", ".join(f'"{column}"' for column in columns)
    values = ", ".join("?" for _ in columns)
    replaced = ", ".join(f'"{c}" = excluded."{c}"' for c in columns if c != key)
    return (
        f"INSERT INTO {table} ({names}) VALUES ({values})"
        f' ON CONFLICT ("{key}") DO UPDATE SET {replaced}'
    )


def table_name(schema: CollectionSchema, tenant: str) -> str:
    """The name of the table of chunks of a collection, or of one of its tenants.

    The name has the letters and digits of the collection's name and a hash of the whole definition:
    a collection that is created again with another definition is another table, so that a process
    with the old definition does not misread it.
    """
    spoken = re.sub("[^a-z0-9]+", "_", schema.name.lower()).strip("_")[:40] or "c"
    whole = f"{dump_schema(schema)}\n{tenant}"
    return f"{spoken}-{hashlib.sha256(whole.encode(errors='replace')).hexdigest()[:16]}"


def vector_column(schema: CollectionSchema, vector_name: str) -> str:
    """The column of the default vector, or of a named one."""
    return f"xs_{sorted(schema.named).index(vector_name) + 1}" if vector_name else "xs"


def check_fits(schema: CollectionSchema) -> None:
    """Raise InvalidRequest if CrateDB cannot store the name or the vectors of the collection."""
    check_name(schema.name)
    for name, spec in {"default": schema.default, **schema.named}.items():
        if spec.dimension > MAX_DIMENSION:
            raise InvalidRequest(
                f"The dimension of vector {name!r} is {spec.dimension};"
                f" CrateDB holds at most {MAX_DIMENSION}."
            )


def check_name(name: str) -> None:
    """Raise InvalidRequest for a name of a collection or a tenant that is too long."""
    if len(name.encode(errors="replace")) > MAX_NAME_BYTES:
        raise InvalidRequest(
            f"The name {name[:40]!r}… is too long: at most {MAX_NAME_BYTES} bytes."
        )
