"""The ledger's tables of conversations, and of the use of language models."""

from sqlalchemy import BigInteger, Column, Float, Index, Integer, String, Table

from callslip.stores.ledger.base.schema import metadata as metadata

conversations = Table(
    "conversations",
    metadata,
    Column("key", String(32), primary_key=True),  # the key in the agent's checkpointer
    Column("collection", String(128), nullable=False),
    Column("tenant", String(128), nullable=False),
    Column("thread_id", String(64), nullable=False),
    Column("created_at", Float, nullable=False),
    Column("asked_at", Float, nullable=False, index=True),
    Column("owner", String(256), nullable=False, server_default=""),  # the reader who began it
    Index("conversations_of_a_place", "collection", "tenant", "thread_id"),
)
"""Names of conversations with the agent; their turns are not in the ledger."""

model_days = Table(
    "model_days",
    metadata,
    Column("collection", String(128), primary_key=True),
    Column("tenant", String(128), primary_key=True),
    Column("day", Integer, primary_key=True),  # since 1970, in UTC
    Column("tokens", BigInteger, nullable=False),  # used and reserved, of all models
    Index("model_days_by_day", "day"),
)
"""The tokens of each day, which the daily ceiling limits.

A row stays when its collection is deleted, because the tokens were paid for.
"""

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
"""The calls and tokens of each language model, by scope and day."""
