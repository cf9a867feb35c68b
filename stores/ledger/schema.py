"""The ledger's tables. Times are UTC seconds since 1970: every database compares them alike."""

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    text,
)

metadata = MetaData()

SCHEMA_VERSION = 3

about = Table("about", metadata, Column("schema_version", Integer, primary_key=True))

collections = Table(
    "collections",
    metadata,
    Column("name", String(128), primary_key=True),
    Column("store", String(32), nullable=False),
    Column("embedder", String(256), nullable=False),
    Column("schema", JSON, nullable=False),
    Column("analyzer", String(64), nullable=False),
    Column("created_at", Float, nullable=False),
    Column("deleted_at", Float),
)

tenants = Table(
    "tenants",
    metadata,
    Column("collection", ForeignKey("collections.name"), primary_key=True),
    Column("name", String(128), primary_key=True),
    Column("created_at", Float, nullable=False),
    Column("deleted_at", Float),
)

property_names = Table(
    "property_names",
    metadata,
    Column("collection", ForeignKey("collections.name"), primary_key=True),
    Column("name", String(128), primary_key=True),
)
"""Every property that a chunk of the collection ever had: a filter on another one is a mistake."""

documents = Table(
    "documents",
    metadata,
    Column("document_id", String(32), primary_key=True),
    Column("collection", ForeignKey("collections.name"), nullable=False),
    Column("tenant", String(128), nullable=False, server_default=""),
    Column("name", String(1024), nullable=False),
    Column("live_version", Integer),
    Column("created_at", Float, nullable=False),
    Column("deleted_at", Float),
    Column("removed_at", Float),
    Column("nudged_at", Float, nullable=False, server_default="0"),
    Column("receipt", JSON),
    Index(
        "one_document_per_name",
        "collection",
        "tenant",
        "name",
        unique=True,
        sqlite_where=text("deleted_at IS NULL"),
        postgresql_where=text("deleted_at IS NULL"),
    ),
    Index(
        "documents_to_remove",
        "nudged_at",
        sqlite_where=text("deleted_at IS NOT NULL AND removed_at IS NULL"),
        postgresql_where=text("deleted_at IS NOT NULL AND removed_at IS NULL"),
    ),
)

receipts = Table(
    "receipts",
    metadata,
    Column("collection", String(128), primary_key=True),
    Column("tenant", String(128), primary_key=True),  # empty: the whole collection
    Column("deleted_at", Float, primary_key=True),
    Column("removed_at", Float),
    Column("before", JSON, nullable=False),
    Column("after", JSON),
)
"""Of deleted collections and tenants, whose own rows go; a name may be deleted many times."""

versions = Table(
    "versions",
    metadata,
    Column("document_id", ForeignKey("documents.document_id"), primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("state", String(16), nullable=False),  # queued, live, superseded, failed
    Column("sha256", String(64), nullable=False, index=True),
    Column("size", Integer, nullable=False),
    Column("filename", String(1024), nullable=False),
    Column("title", String(1024), nullable=False, server_default=""),
    Column("properties", JSON, nullable=False),
    Column("error", JSON),
    Column("created_at", Float, nullable=False),
    Column("finished_at", Float),
    Column("nudged_at", Float, nullable=False),
    Column("nudges", Integer, nullable=False, server_default="0"),
    Index("versions_by_state", "state", "nudged_at"),
)

steps = Table(
    "steps",
    metadata,
    Column("document_id", String(32), primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("step", String(16), primary_key=True),
    Column("state", String(16), nullable=False),  # pending, running, done, failed
    Column("attempts", Integer, nullable=False, server_default="0"),  # the fencing token
    Column("crashes", Integer, nullable=False, server_default="0"),
    Column("worker", String(128)),
    Column("lease_until", Float),
    Column("retry_at", Float),
    Column("failing_since", Float),
    Column("started_at", Float),
    Column("finished_at", Float),
    Column("artifact", String(256)),
    Column("counts", JSON),
    Column("error", JSON),
)

chunks = Table(
    "chunks",
    metadata,
    Column("chunk_id", String(64), primary_key=True),
    Column("first_version", Integer, primary_key=True),
    Column("last_version", Integer),  # null: up to the newest
    Column("document_id", String(32), nullable=False, index=True),
    Column("text_hash", String(64), nullable=False),
    Index(
        "chunks_that_end",
        "document_id",
        "last_version",
        sqlite_where=text("last_version IS NOT NULL"),
        postgresql_where=text("last_version IS NOT NULL"),
    ),
)

moves = Table(
    "moves",
    metadata,
    Column("collection", ForeignKey("collections.name"), primary_key=True),
    Column("store", String(32), nullable=False),
    Column("switched", Boolean, nullable=False),
    Column("token", String(32), nullable=False),
    Column("lease_until", Float, nullable=False),
    Column("paused", Boolean, nullable=False),
)
"""One row while a collection moves. `store` is where to; once switched, where a copy is left."""

copies = Table(
    "copies",
    metadata,
    Column("collection", ForeignKey("collections.name"), primary_key=True),
    Column("store", String(32), primary_key=True),
    Column("document_id", String(32), primary_key=True),
    Column("version", Integer, nullable=False),  # 0: not whole yet
    Column("upserts", Integer, nullable=False),
)
"""What a move or an import has written, before the ledger counts it as a collection's own."""

vectors = Table(
    "vectors",
    metadata,
    Column("text_hash", String(64), primary_key=True),  # first: vectors are dropped by text alone
    Column("model", String(256), primary_key=True),
    Column("vector", LargeBinary, nullable=False),
    Column("used_at", Float, nullable=False, index=True),
)

sources = Table(
    "sources",
    metadata,
    Column("source_id", String(32), primary_key=True),
    Column("collection", ForeignKey("collections.name"), nullable=False),
    Column("tenant", String(128), nullable=False, server_default=""),
    Column("name", String(128), nullable=False),
    Column("url", String(2048), nullable=False),
    Column("properties", JSON, nullable=False),
    Column("every_seconds", Float),  # null: only when asked
    Column("delete_missing", Boolean, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("due_at", Float, index=True),  # null: not before somebody asks
    Column("nudged_at", Float, nullable=False, server_default="0"),
    Column("asked", JSON),  # what the next run does beyond its settings
    Column("run", Integer, nullable=False, server_default="0"),
    Column("began_at", Float),  # null between two runs
    Column("ended_at", Float),
    Column("counts", JSON),
    Column("error", JSON),
    Column("token", String(32)),
    Column("lease_until", Float, nullable=False, server_default="0"),
    Index("one_source_per_name", "collection", "tenant", "name", unique=True),
)
"""Where documents are fetched from, again and again; one row holds the lease of its run."""

source_items = Table(
    "source_items",
    metadata,
    Column("source_id", ForeignKey("sources.source_id"), primary_key=True),
    Column("path", String(1024), primary_key=True),
    Column("document_id", String(32), index=True),
    Column("etag", String(512), nullable=False, server_default=""),
    Column("modified", String(64), nullable=False, server_default=""),
    Column("size", BigInteger),
    Column("sha256", String(64), nullable=False, server_default=""),
    Column("outcome", String(16), nullable=False),  # of the run that saw it last
    Column("seen_run", Integer, nullable=False),
    Column("seen_at", Float, nullable=False),
    Column("fetched_at", Float),
    Column("error", JSON),
)
"""What a source held when it was last looked at: provenance, and what need not be fetched again."""
