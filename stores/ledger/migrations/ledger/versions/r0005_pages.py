"""Columns of versions, steps and attachments: pages, edits, warnings, servers; proposals."""

from alembic import op
from sqlalchemy import JSON, Column, Float, Index, Integer, MetaData, String, Table, inspect

revision = "0005"
down_revision = "0004"

FINGERPRINT = "78a3f46c1765d83b"
"""A hash of the statements that make this revision's tables on SQLite and PostgreSQL."""

_METADATA = MetaData()

Table(
    "proposals",
    _METADATA,
    Column("proposal_id", String(32), primary_key=True),
    Column("kind", String(16), nullable=False),
    Column("collection", String(128), nullable=False),
    Column("tenant", String(128), nullable=False),
    Column("state", String(16), nullable=False),
    Column("began_at", Float, nullable=False),
    Column("ended_at", Float),
    Column("attempts", Integer, nullable=False),
    Column("lease_until", Float, nullable=False),
    Column("figures", JSON, nullable=False),
    Column("changes", JSON, nullable=False),
    Column("before", JSON, nullable=False),
    Column("reason", String(1024), nullable=False),
    Column("decided_at", Float),
    Column("decided_by", String(256)),
    Index("proposals_of_a_collection", "collection", "kind", "began_at"),
)


def upgrade() -> None:
    """Add what is missing. Pages and warnings are known when a document is ingested again."""
    _METADATA.create_all(op.get_bind())
    new = {
        "versions": (
            Column("pages", JSON),
            Column("corrections", JSON),
            Column("url", String(2048), nullable=False, server_default=""),
            Column("language", String(8), nullable=False, server_default=""),
            Column("by_hand", JSON),
            Column("edited", JSON),
            Column("chunking", JSON),
        ),
        "steps": (Column("warnings", JSON),),
        "attachments": (
            Column("server", String(512), nullable=False, server_default=""),
            Column("tenant", String(256), nullable=False, server_default=""),
        ),
    }
    for table, columns in new.items():
        present = {column["name"] for column in inspect(op.get_bind()).get_columns(table)}
        for column in columns:
            if column.name not in present:
                op.add_column(table, column)
