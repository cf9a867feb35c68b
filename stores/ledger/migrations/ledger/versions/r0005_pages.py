"""Columns of versions, steps and attachments: pages, edits, warnings, servers, among others."""

from alembic import op
from sqlalchemy import JSON, Column, String, inspect

revision = "0005"
down_revision = "0004"

FINGERPRINT = "58045426abc400ad"
"""A hash of the statements that make this revision's tables on SQLite and PostgreSQL."""


def upgrade() -> None:
    """Add the columns. Pages and warnings are known when a document is ingested again."""
    new = {
        "versions": (
            Column("pages", JSON),
            Column("corrections", JSON),
            Column("url", String(2048), nullable=False, server_default=""),
            Column("language", String(8), nullable=False, server_default=""),
            Column("by_hand", JSON),
            Column("edited", JSON),
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
