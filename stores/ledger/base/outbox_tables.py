"""The ledger's tables of events, and of their deliveries to webhooks."""

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    String,
    Table,
    text,
)

from callslip.stores.ledger.base.schema import metadata as metadata

CHANGES_A_CORPUS = text("kind IN ('document.live', 'document.deleted')")
"""The condition on events after which a search may return other results."""

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
    sqlite_autoincrement=True,  # no id is used twice, even if old events are deleted
)
"""The outbox: events of documents, each written in the transaction of the change itself."""

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
    Column("seen_event", BigInteger, nullable=False),  # deliveries are made up to this event
)

deliveries = Table(
    "deliveries",
    metadata,
    Column("delivery_id", String(40), primary_key=True),
    Column("webhook_id", ForeignKey("webhooks.webhook_id"), nullable=False),
    Column("event_id", BigInteger, nullable=False),
    Column("body", JSON, nullable=False),
    Column("state", String(16), nullable=False),  # waiting, delivered, given-up
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
"""The delivery of one event to one webhook: its state, and afterwards the log of it."""
