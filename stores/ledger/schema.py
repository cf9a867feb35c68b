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

SCHEMA_VERSION = 4

about = Table(
    "about",
    metadata,
    Column("schema_version", Integer, primary_key=True),
    Column("last_lane", String(256), nullable=False, server_default=""),  # whose turn it was
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
    Column("vectors", String(8), nullable=False),  # ours, none
)
"""Collections whose chunks are the rows of a table that is not ours."""

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
    Column("parent_id", String(32), index=True),  # of a file that came within another
    Column("parent_version", Integer),  # the newest of the parent's that brought it
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
    Column("turn", String(8)),  # of a queued one: waiting, sent, resting (stores/ledger/turns.py)
    Column("lane", String(256), nullable=False, server_default=""),
    Column("priority", Integer, nullable=False, server_default="0"),
    Column("former", Integer),  # whose chunks it keeps where the text is the same
    Column("restores", Integer),  # the version whose content this one brings back
    Column("superseded_by", Integer),
    Index("versions_by_state", "state", "nudged_at"),
    Index(
        "versions_waiting",
        "lane",
        text("priority DESC"),
        "created_at",
        sqlite_where=text("turn = 'waiting'"),
        postgresql_where=text("turn = 'waiting'"),
    ),
    Index(
        "versions_sent",
        "lane",
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
)

chunks = Table(
    "chunks",
    metadata,
    Column("chunk_id", String(64), primary_key=True),
    Column("first_version", Integer, primary_key=True),
    Column("last_version", Integer),  # null: up to the newest
    Column("document_id", String(32), nullable=False, index=True),
    Column("text_hash", String(64), nullable=False),
    Column("start", Integer),  # in the text of these versions; null: where the store says
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

token_vectors = Table(
    "token_vectors",
    metadata,
    Column("text_hash", String(64), primary_key=True),  # first, as in `vectors`
    Column("model", String(256), primary_key=True),
    Column("tokens", LargeBinary, nullable=False),
    Column("used_at", Float, nullable=False, index=True),
)

CHANGES_A_CORPUS = text("kind IN ('document.live', 'document.deleted')")
"""Of an event: from then on a search may answer otherwise."""

events = Table(
    "events",
    metadata,
    Column("event_id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("document_id", String(32), nullable=False),
    Column("collection", String(128), nullable=False),
    Column("tenant", String(128), nullable=False),
    Column("version", Integer),
    Column("kind", String(32), nullable=False),
    Column("step", String(16)),
    Column("at", Float, nullable=False),
    Column("data", JSON(none_as_null=True)),
    Index("events_of_a_document", "document_id", "event_id"),
    Index(
        "events_that_change_a_corpus",
        "collection",
        "tenant",
        "event_id",
        sqlite_where=CHANGES_A_CORPUS,
        postgresql_where=CHANGES_A_CORPUS,
    ),
    sqlite_autoincrement=True,  # an id is never given twice, not even after a trim
)
"""What happened to documents, written with the change itself: an outbox."""

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
"""What was submitted together. Not `fresh`: its content was there already."""

webhooks = Table(
    "webhooks",
    metadata,
    Column("webhook_id", String(32), primary_key=True),
    Column("url", String(2048), nullable=False),
    Column("secret", String(128), nullable=False),
    Column("collection", String(128)),  # null: every collection
    Column("kinds", JSON, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("stopped_at", Float),
    Column("seen_event", BigInteger, nullable=False),  # up to here its deliveries are made
)

deliveries = Table(
    "deliveries",
    metadata,
    Column("delivery_id", String(40), primary_key=True),
    Column("webhook_id", ForeignKey("webhooks.webhook_id"), nullable=False),
    Column("event_id", BigInteger, nullable=False),
    Column("body", JSON, nullable=False),
    Column("state", String(16), nullable=False),  # waiting, delivered, given up
    Column("created_at", Float, nullable=False),
    Column("next_at", Float),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("attempted_at", Float),
    Column("status", Integer),
    Column("error", String(256)),
    Index("deliveries_of_a_webhook", "webhook_id", "created_at"),
    Index(
        "deliveries_to_send",
        "next_at",
        sqlite_where=text("state = 'waiting'"),
        postgresql_where=text("state = 'waiting'"),
    ),
)
"""One event on its way to one webhook, and afterwards the log of it."""


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

facets = Table(
    "facets",
    metadata,
    Column("collection", ForeignKey("collections.name"), primary_key=True),
    Column("tenant", String(128), primary_key=True),
    Column("facet", String(128), primary_key=True),
    Column("stamp", String(32), nullable=False),  # another one whenever a search should read anew
    Column("calibration", JSON),  # of retrieval/facet_weights.py; null: nothing to tell apart
    Column("run", String(32), nullable=False),  # who asked for the build that began last
    Column("began_at", Float, nullable=False),
    Column("ended_at", Float),  # null while a build is at work
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
    Column("probes", LargeBinary, nullable=False),  # rows of the vector's length
    Column("probes_apart", Boolean, nullable=False),
    Column("chunks", Integer, nullable=False),
    Column("updated_at", Float, nullable=False),
)
"""What each value of a facet means, as a vector. No text of documents is kept."""

conversations = Table(
    "conversations",
    metadata,
    Column("key", String(32), primary_key=True),  # what the agent's checkpointer knows it by
    Column("collection", String(128), nullable=False),
    Column("tenant", String(128), nullable=False),
    Column("thread_id", String(64), nullable=False),
    Column("created_at", Float, nullable=False),
    Column("asked_at", Float, nullable=False, index=True),
    Index("conversations_of_a_place", "collection", "tenant", "thread_id"),
)
"""Names of conversations with the agent; what was said in them is not in the ledger."""


model_days = Table(
    "model_days",
    metadata,
    Column("collection", String(128), primary_key=True),
    Column("tenant", String(128), primary_key=True),
    Column("day", Integer, primary_key=True),  # since 1970, in UTC
    Column("tokens", BigInteger, nullable=False),  # used and reserved, of all models
    Index("model_days_by_day", "day"),
)
"""What a day's ceiling is held against. A row stays when its collection goes: it was paid for."""

model_usage = Table(
    "model_usage",
    metadata,
    Column("collection", String(128), primary_key=True),
    Column("tenant", String(128), primary_key=True),
    Column("day", Integer, primary_key=True),
    Column("model", String(256), primary_key=True),
    Column("calls", Integer, nullable=False),
    Column("input_tokens", BigInteger, nullable=False),
    Column("output_tokens", BigInteger, nullable=False),
    Index("model_usage_by_day", "day"),
)
"""What language models have used."""
