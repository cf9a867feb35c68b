"""Versions have the pages of their text, and corrections of it; steps what they left out."""

from alembic import op
from sqlalchemy import JSON, Column, inspect

revision = "0005"
down_revision = "0004"

FINGERPRINT = "85fc696806bede20"
"""A hash of the statements that make this revision's tables on SQLite and PostgreSQL."""


def upgrade() -> None:
    """Add the columns. Pages and warnings are known when a document is ingested again."""
    inspector = inspect(op.get_bind())
    for table, names in (("versions", ("pages", "corrections")), ("steps", ("warnings",))):
        present = {column["name"] for column in inspector.get_columns(table)}
        for name in names:
            if name not in present:
                op.add_column(table, Column(name, JSON))
