"""The ledger's tables of searches, outcomes and chunk memory, and the deletion of their rows.

Rows refer to chunks, documents and questions by id. The text of a question is stored only if the
collection has the option `keep_queries`; the text of a document is never stored in these tables.
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
    false,
    select,
)

from callslip.stores.ledger.base.schema import facet_values, facets
from callslip.stores.ledger.base.schema import metadata as metadata

memory_scopes = Table(
    "memory_places",
    metadata,
    Column("collection", String(128), primary_key=True),
    Column("tenant", String(128), primary_key=True),
    Column("changes", Integer, nullable=False),  # incremented by each change; the row is the lock
    Column("centre", LargeBinary),  # mean vector of questions, float32; null: too few
    Column("questions", Integer, nullable=False, server_default="0"),  # questions in the mean
)
"""One row for each collection or tenant whose chunk memory was ever changed."""

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
    Column("utility", Float, nullable=False),  # the value at `utility_at`
    Column("utility_at", Float, nullable=False),
    Column("intents", JSON, nullable=False),
    Column("entities", JSON, nullable=False),
    Column("questions", Integer, nullable=False),  # the number of vectors in `question_sum`
    Column("question_sum", LargeBinary),  # int64, see stores/chunk_stats.py
    Index("chunk_stats_by_utility", "collection", "tenant", "utility"),
)
"""The rows of `ChunkStats` (specification 003 §3.2)."""

query_profiles = Table(
    "query_profiles",
    metadata,
    Column("profile_id", String(32), primary_key=True),
    Column("collection", String(128), nullable=False),
    Column("tenant", String(128), nullable=False),
    Column("text", String),  # null without the option `keep_queries`
    Column("lang", String(16), nullable=False),
    Column("intent", String(32), nullable=False),
    Column("entities", JSON, nullable=False),
    Column("vector", LargeBinary),  # float32; null: the keyword retriever answered alone
    Column("asked", Integer, nullable=False),
    Column("first_at", Float, nullable=False),
    Column("last_at", Float, nullable=False, index=True),
    Index("query_profiles_of_a_place", "collection", "tenant", "last_at"),
)
"""One row per question; `asked` is the number of its searches."""

retrieval_events = Table(
    "retrieval_events",
    metadata,
    Column("trace_id", String(32), primary_key=True),
    Column("collection", String(128), nullable=False),
    Column("tenant", String(128), nullable=False),
    Column("profile_id", String(32), nullable=False),
    Column("at", Float, nullable=False, index=True),
    Column("stamp", String(64), nullable=False),
    Column("settings", JSON, nullable=False),  # alpha, fusion, as_of, the explored chunk, …
    # Chunk ids in rank order, the components of the first hits' scores, and the features of hits
    # and of candidates that were not shown: of an earlier version, else empty.
    Column("hits", JSON, nullable=False),
    Column("scores", JSON, nullable=False),
    Column("basis", JSON, nullable=False),
    Column("packed", LargeBinary),  # these three, by base/packing.py; null: they are in columns
    Index("retrieval_events_of_a_place", "collection", "tenant", "at"),
)
"""One row per answered search."""

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
    Column("intent", String(32), nullable=False),  # of the question at that time, so that the
    Column("entities", JSON, nullable=False),  # outcome can be withdrawn exactly
    Column("vector", LargeBinary),
    Column("at", Float, nullable=False, index=True),
    Column("withdrawn_at", Float),
    Column("by_model", Boolean, nullable=False, server_default=false()),  # a language model judged
    Index("outcomes_of_a_user", "collection", "tenant", "user", "at"),
)
"""Verdicts of users or of the answer validator on a search's hits."""

outcome_chunks = Table(
    "outcome_chunks",
    metadata,
    Column("outcome_id", String(32), primary_key=True),
    Column("chunk_id", String(64), primary_key=True),
    Column("document_id", String(32), nullable=False, index=True),  # empty: document was gone
    Column("counted_as", String(32), unique=True),  # null: does not count, or no longer counts
    Column("with_vector", Boolean, nullable=False),
    Column("counts", Boolean),  # null: counted before revision 2, to be weighed anew
    Index("outcome_chunks_of_a_chunk", "chunk_id"),
)
"""The chunks of each outcome. `counted_as` is the key under which a verdict counts only once;
`counts` says whether the chunk's statistics include the verdict (see learning/approvals.py)."""

traces = Table(
    "traces",
    metadata,
    Column("trace_id", String(32), primary_key=True),
    Column("collection", String(128), nullable=False),
    Column("tenant", String(128), nullable=False),
    Column("at", Float, nullable=False, index=True),
    Column("body", JSON, nullable=False),  # of an earlier version; else empty
    Column("packed", LargeBinary),  # base/packing.py; null: the trace is in `body`
    Index("traces_of_a_place", "collection", "tenant"),
)
"""How a search produced its hits; stored for a limited time."""

proposals = Table(
    "proposals",
    metadata,
    Column("proposal_id", String(32), primary_key=True),
    Column("kind", String(16), nullable=False),  # ranking, facets
    Column("collection", String(128), nullable=False),
    Column("tenant", String(128), nullable=False),  # whose passages were sampled; empty: of all
    Column("state", String(16), nullable=False),  # stores/ledger/learning/proposals.py
    Column("began_at", Float, nullable=False),
    Column("ended_at", Float),
    Column("attempts", Integer, nullable=False),  # the fencing token of the run
    Column("lease_until", Float, nullable=False),
    Column("figures", JSON, nullable=False),
    Column("changes", JSON, nullable=False),
    Column("before", JSON, nullable=False),  # of the options that `changes` replaces
    Column("reason", String(1024), nullable=False),
    Column("decided_at", Float),
    Column("decided_by", String(256)),
    Index("proposals_of_a_collection", "collection", "kind", "began_at"),
)
"""The runs of the scheduler that look for better weights and further facets, and what they propose.

The rows contain names of properties and numbers, and no text of documents or questions.
"""

_OF_A_SCOPE = (
    *(memory_scopes, chunk_stats, query_profiles, retrieval_events, traces),
    *(facet_values, facets, proposals),
)  # without the outcomes, whose chunks must be deleted first


def forget_scope(connection: Connection, collection: str, tenant: str | None = None) -> None:
    """Delete the searches, outcomes, chunk memory and facets of a collection or of one tenant.

    Runs within the caller's transaction.
    """
    of = outcomes.c.collection == collection
    if tenant is not None:
        of &= outcomes.c.tenant == tenant
    mine = select(outcomes.c.outcome_id).where(of)
    connection.execute(delete(outcome_chunks).where(outcome_chunks.c.outcome_id.in_(mine)))
    connection.execute(delete(outcomes).where(of))
    for table in _OF_A_SCOPE:
        of = table.c.collection == collection
        if tenant is not None:
            of &= table.c.tenant == tenant
        connection.execute(delete(table).where(of))


def forget_document(connection: Connection, document_id: str) -> None:
    """Delete the statistics and outcomes of a document's chunks, within a transaction."""
    for table in (chunk_stats, outcome_chunks):
        connection.execute(delete(table).where(table.c.document_id == document_id))
