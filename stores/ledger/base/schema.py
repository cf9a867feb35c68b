"""The ledger's tables. Times are UTC seconds since 1970, which all databases compare equally.

If a column's name in the database differs from its name in the code, the name in the code is its
`key`. Attributes of a row have the database's name, unless the query labels the column.
"""

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
    false,
    text,
)

metadata = MetaData()

SCHEMA_VERSION = 4

about = Table(
    "about",
    metadata,
    Column("schema_version", Integer, primary_key=True),
    Column(
        "last_lane", String(256), key="last_tenant_queue", nullable=False, server_default=""
    ),  # the tenant queue that was served last
)

collections = Table(
    "collections",
    metadata,
    Column("name", String(128), primary_key=True),
    Column("store", String(32), nullable=False),
    Column("embedder", String(256), nullable=False),
    Column("schema", JSON, nullable=False),
    Column("analyzer", String(64), nullable=False),
    Column("options", JSON, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("deleted_at", Float),
)

attachments = Table(
    "attachments",
    metadata,
    Column("collection", ForeignKey("collections.name"), primary_key=True),
    Column("table_schema", String(256), nullable=False),
    Column("table_name", String(256), nullable=False),
    Column("vectors", String(8), nullable=False),  # "ours", "previous" or "none"
    Column("server", String(512), nullable=False, server_default=""),  # empty: CrateDB
    Column("tenant", String(256), nullable=False, server_default=""),
)
"""Collections whose chunks are the rows of a table or a Chroma collection of another program."""

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
"""Every property that a chunk of the collection ever had; a filter on another one is an error."""

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
    Column("nudged_at", Float, key="dispatched_at", nullable=False, server_default="0"),
    Column("receipt", JSON),
    Column("parent_id", String(32), index=True),  # the document that contains this one
    Column("parent_version", Integer),  # the parent's newest version that contains it
    Column("audience", String(32), nullable=False, server_default=""),  # empty: everyone
    Column(
        "readers_due", Boolean, nullable=False, server_default=false()
    ),  # the store may have another audience
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
        "documents_with_readers_due",
        "collection",
        "tenant",
        sqlite_where=text("readers_due"),
        postgresql_where=text("readers_due"),
    ),
    Index(
        "documents_to_remove",
        "dispatched_at",
        sqlite_where=text("deleted_at IS NOT NULL AND removed_at IS NULL"),
        postgresql_where=text("deleted_at IS NOT NULL AND removed_at IS NULL"),
    ),
)

readers = Table(
    "readers",
    metadata,
    Column("audience", String(32), primary_key=True),
    Column("reader", String(256), primary_key=True, index=True),
)
"""The readers of each audience, which is a list of readers. An audience without rows has none."""

audiences = Table(
    "audiences",
    metadata,
    Column("collection", String(128), primary_key=True),
    Column("tenant", String(128), primary_key=True),
    Column("audience", String(32), primary_key=True),
)
"""The audiences that documents of each scope have, or had."""

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
"""Receipts of deleted collections and tenants, whose other rows are deleted.

The key has the time of the deletion, because a name can be deleted many times.
"""

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
    Column("nudged_at", Float, key="dispatched_at", nullable=False),
    Column("nudges", Integer, key="dispatches", nullable=False, server_default="0"),
    Column(
        "turn", String(8)
    ),  # of a queued version: waiting, sent, resting (stores/ledger/base/fair_queue.py)
    Column("lane", String(256), key="tenant_queue", nullable=False, server_default=""),
    Column("priority", Integer, nullable=False, server_default="0"),
    Column("former", Integer, key="previous_version"),  # live at submission, or the restored one
    Column("restores", Integer),  # the version whose content this version restores
    Column("superseded_by", Integer),
    Column("pages", JSON(none_as_null=True)),  # stores/ledger/documents/pages.py; null: unknown
    Column("corrections", JSON(none_as_null=True)),  # stores/ledger/base/corrections.py; null: none
    Column("url", String(2048), nullable=False, server_default=""),  # of the source, http(s)
    Column("language", String(8), nullable=False, server_default=""),  # stated; empty: recognised
    Column("by_hand", JSON(none_as_null=True)),  # what edits set: VersionRecord.by_hand
    Column("edited", JSON(none_as_null=True)),  # what an edit changed; null: no edit
    Column("chunking", JSON(none_as_null=True)),  # lengths of chunks; null: those of the settings
    Index("versions_by_state", "state", "dispatched_at"),
    Index(
        "versions_waiting",
        "tenant_queue",
        text("priority DESC"),
        "created_at",
        sqlite_where=text("turn = 'waiting'"),
        postgresql_where=text("turn = 'waiting'"),
    ),
    Index(
        "versions_sent",
        "tenant_queue",
        sqlite_where=text("turn = 'sent'"),
        postgresql_where=text("turn = 'sent'"),
    ),
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
    Column("warnings", JSON),  # what the step left out, in sentences
)

chunks = Table(
    "chunks",
    metadata,
    Column("chunk_id", String(64), primary_key=True),
    Column("first_version", Integer, primary_key=True),
    Column("last_version", Integer),  # null: no end, the newest included
    Column("document_id", String(32), nullable=False, index=True),
    Column("text_hash", String(64), nullable=False),
    Column("start", Integer),  # in the text of these versions; null: only the store has it
    Column("end", Integer),
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
"""One row per collection that is being moved.

`store` is the target of the move; after the switch, the store with the leftover copy.
"""

copies = Table(
    "copies",
    metadata,
    Column("collection", ForeignKey("collections.name"), primary_key=True),
    Column("store", String(32), primary_key=True),
    Column("document_id", String(32), primary_key=True),
    Column("version", Integer, nullable=False),  # 0: incomplete or out of date
    Column("upserts", Integer, nullable=False),
)
"""Documents that a move or an import has written to a store before the collection uses them.

A row with the id LEFT_COPY stands for a copy that a move left in the previous store on purpose.
"""

LEFT_COPY = ""

vectors = Table(
    "vectors",
    metadata,
    Column("text_hash", String(64), primary_key=True),  # first: rows are deleted by text alone
    Column("model", String(256), primary_key=True),
    Column("vector", LargeBinary, nullable=False),
    Column("used_at", Float, nullable=False, index=True),
)

token_vectors = Table(
    "token_vectors",
    metadata,
    Column("text_hash", String(64), primary_key=True),  # first, as in `vectors`
    Column("model", String(256), primary_key=True),
    Column("tokens", LargeBinary, nullable=False),
    Column("used_at", Float, nullable=False, index=True),
)

batches = Table(
    "batches",
    metadata,
    Column("batch_id", String(64), primary_key=True),
    Column("expected", Integer),
    Column("created_at", Float, nullable=False),
)

batch_items = Table(
    "batch_items",
    metadata,
    Column("batch_id", String(64), primary_key=True),
    Column("document_id", String(32), primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("collection", String(128), nullable=False),
    Column("fresh", Boolean, nullable=False),
    Column("submitted_at", Float, nullable=False),
    Index("batch_items_of_a_collection", "collection", "submitted_at", "batch_id"),
)
"""The submissions of each batch. `fresh` is false if the content was stored already."""

sources = Table(
    "sources",
    metadata,
    Column("source_id", String(32), primary_key=True),
    Column("collection", ForeignKey("collections.name"), nullable=False),
    Column("tenant", String(128), nullable=False, server_default=""),
    Column("name", String(128), nullable=False),
    Column("url", String(2048), nullable=False),
    Column("properties", JSON, nullable=False),
    Column("every_seconds", Float),  # null: only on request
    Column("delete_missing", Boolean, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("due_at", Float, index=True),  # null: not before a request
    Column("nudged_at", Float, key="dispatched_at", nullable=False, server_default="0"),
    Column("asked", JSON),  # options of the run that was requested
    Column("run", Integer, nullable=False, server_default="0"),
    Column("began_at", Float),  # null between two runs
    Column("ended_at", Float),
    Column("counts", JSON),
    Column("error", JSON),
    Column("token", String(32)),
    Column("lease_until", Float, nullable=False, server_default="0"),
    Column("readers", JSON),  # of its documents; null: as before, and of new ones everyone
    Index("one_source_per_name", "collection", "tenant", "name", unique=True),
)
"""Sources, from which documents are fetched repeatedly. A row also has the lease of its run."""

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
    Column("outcome", String(16), nullable=False),  # in the last run that saw the file
    Column("seen_run", Integer, nullable=False),
    Column("seen_at", Float, nullable=False),
    Column("fetched_at", Float),
    Column("error", JSON),
)
"""The files of each source as last read: the origin of documents, and how changes are detected."""

facets = Table(
    "facets",
    metadata,
    Column("collection", ForeignKey("collections.name"), primary_key=True),
    Column("tenant", String(128), primary_key=True),
    Column("facet", String(128), primary_key=True),
    Column("stamp", String(32), nullable=False),  # changes when searches must read it again
    Column("calibration", JSON),  # of retrieval/facets/weights.py; null: values not separable
    Column("run", String(32), nullable=False),  # the request of the build that began last
    Column("began_at", Float, nullable=False),
    Column("ended_at", Float),  # null while a build is running
    Column("counts", JSON, nullable=False),
    Column("error", JSON),
)
"""The last build of each facet's vectors."""

facet_values = Table(
    "facet_values",
    metadata,
    Column("collection", ForeignKey("collections.name"), primary_key=True),
    Column("tenant", String(128), primary_key=True),
    Column("facet", String(128), primary_key=True),
    Column("value", String(256), primary_key=True),
    Column("aliases", JSON, nullable=False),
    Column("description", String(1024), nullable=False),
    Column("fingerprint", String(32), nullable=False),
    Column("model", String(256), nullable=False),
    Column("vector", LargeBinary, nullable=False),
    Column("probes", LargeBinary, nullable=False),  # rows with the length of `vector`
    Column("probes_apart", Boolean, nullable=False),
    Column("chunks", Integer, nullable=False),
    Column("updated_at", Float, nullable=False),
)
"""A vector for each value of a facet. The rows contain no text of documents."""
