"""The ledger's tables of what is learned from searches, and how their rows go with their owners.

Rows name chunks, documents and questions by id. The text of a question is kept only where the
collection's option `keep_queries` says so; the text of a document never is.
"""

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Connection,
    Float,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    delete,
    select,
)

from stores.ledger.schema import facet_values, facets, metadata

memory_places = Table(
    "memory_places",
    metadata,
    Column("collection", String(128), primary_key=True),
    Column("tenant", String(128), primary_key=True),
    Column("changes", Integer, nullable=False),  # raised by each change; the row is the lock
    Column("centre", LargeBinary),  # the mean question, float32; null: too few are known
    Column("questions", Integer, nullable=False, server_default="0"),  # that it is the mean of
)
"""One row for each collection, or tenant of one, that has learned something."""

chunk_stats = Table(
    "chunk_stats",
    metadata,
    Column("collection", String(128), primary_key=True),
    Column("tenant", String(128), primary_key=True),
    Column("chunk_id", String(64), primary_key=True),
    Column("document_id", String(32), nullable=False, index=True),
    Column("useful", Integer, nullable=False),
    Column("useless", Integer, nullable=False),
    Column("last_useful_at", Float),
    Column("utility", Float, nullable=False),  # as it was at `utility_at`
    Column("utility_at", Float, nullable=False),
    Column("intents", JSON, nullable=False),
    Column("entities", JSON, nullable=False),
    Column("questions", Integer, nullable=False),  # that `question_sum` is the sum of
    Column("question_sum", LargeBinary),  # int64, see stores/chunk_stats.py
    Index("chunk_stats_by_utility", "collection", "tenant", "utility"),
)
"""ChunkStats of specification 003 §3.2."""

query_profiles = Table(
    "query_profiles",
    metadata,
    Column("profile_id", String(32), primary_key=True),
    Column("collection", String(128), nullable=False),
    Column("tenant", String(128), nullable=False),
    Column("text", String),  # null unless the collection keeps it
    Column("lang", String(16), nullable=False),
    Column("intent", String(32), nullable=False),
    Column("entities", JSON, nullable=False),
    Column("vector", LargeBinary),  # float32; null: the keyword leg answered alone
    Column("asked", Integer, nullable=False),
    Column("first_at", Float, nullable=False),
    Column("last_at", Float, nullable=False, index=True),
    Index("query_profiles_of_a_place", "collection", "tenant", "last_at"),
)
"""A question, however often it was asked."""

retrieval_events = Table(
    "retrieval_events",
    metadata,
    Column("trace_id", String(32), primary_key=True),
    Column("collection", String(128), nullable=False),
    Column("tenant", String(128), nullable=False),
    Column("profile_id", String(32), nullable=False),
    Column("at", Float, nullable=False, index=True),
    Column("stamp", String(64), nullable=False),
    Column("settings", JSON, nullable=False),  # alpha, fusion, as_of, what was explored
    Column("hits", JSON, nullable=False),  # chunk ids in their order
    Column("scores", JSON, nullable=False),  # of the first of them, by component
    Column("basis", JSON, nullable=False),  # of these and of candidates that were not shown
    Index("retrieval_events_of_a_place", "collection", "tenant", "at"),
)
"""A search that was answered."""

outcomes = Table(
    "outcomes",
    metadata,
    Column("outcome_id", String(32), primary_key=True),
    Column("collection", String(128), nullable=False),
    Column("tenant", String(128), nullable=False),
    Column("trace_id", String(32), nullable=False, index=True),
    Column("profile_id", String(32), nullable=False),
    Column("user", String(128), nullable=False),
    Column("verdict", String(16), nullable=False),  # helpful, unhelpful, validated
    Column("intent", String(32), nullable=False),  # of the question as it was added, so that it
    Column("entities", JSON, nullable=False),  # can be taken back exactly
    Column("vector", LargeBinary),
    Column("at", Float, nullable=False, index=True),
    Column("withdrawn_at", Float),
    Index("outcomes_of_a_user", "collection", "tenant", "user", "at"),
)
"""What somebody, or the validator, said of a search's hits."""

outcome_chunks = Table(
    "outcome_chunks",
    metadata,
    Column("outcome_id", String(32), primary_key=True),
    Column("chunk_id", String(64), primary_key=True),
    Column("document_id", String(32), nullable=False, index=True),  # empty: it was gone
    Column("counted_as", String(32), unique=True),  # null: it does not count, or no longer
    Column("with_vector", Boolean, nullable=False),
)
"""Of which chunks; one `counted_as` counts once."""

traces = Table(
    "traces",
    metadata,
    Column("trace_id", String(32), primary_key=True),
    Column("collection", String(128), nullable=False),
    Column("tenant", String(128), nullable=False),
    Column("at", Float, nullable=False, index=True),
    Column("body", JSON, nullable=False),
    Index("traces_of_a_place", "collection", "tenant"),
)
"""How a search came to its hits, for a time."""

_OF_A_PLACE = (
    *(memory_places, chunk_stats, query_profiles, retrieval_events, traces),
    *(facet_values, facets),
)  # all but the outcomes, whose chunks go first


def forget_place(connection: Connection, collection: str, tenant: str | None = None) -> None:
    """Drop what was learned of a collection, or of one tenant of it, within a transaction."""
    of = outcomes.c.collection == collection
    if tenant is not None:
        of &= outcomes.c.tenant == tenant
    mine = select(outcomes.c.outcome_id).where(of)
    connection.execute(delete(outcome_chunks).where(outcome_chunks.c.outcome_id.in_(mine)))
    connection.execute(delete(outcomes).where(of))
    for table in _OF_A_PLACE:
        of = table.c.collection == collection
        if tenant is not None:
            of &= table.c.tenant == tenant
        connection.execute(delete(table).where(of))


def forget_document(connection: Connection, document_id: str) -> None:
    """Drop what was learned about a document's chunks, within a transaction."""
    for table in (chunk_stats, outcome_chunks):
        connection.execute(delete(table).where(table.c.document_id == document_id))
