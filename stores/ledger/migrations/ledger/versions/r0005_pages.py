"""Versions have the pages of their text, and steps what they left out."""

from alembic import op
from sqlalchemy import JSON, Column, inspect

revision = "0005"
down_revision = "0004"

FINGERPRINT = "3c9022e960012070"
"""A hash of the statements that make this revision's tables on SQLite and PostgreSQL."""


def upgrade() -> None:
    """Add the columns. Pages and warnings are known when a document is ingested again."""
    present = inspect(op.get_bind())
    if "pages" not in {column["name"] for column in present.get_columns("versions")}:
        op.add_column("versions", Column("pages", JSON))
    if "warnings" not in {column["name"] for column in present.get_columns("steps")}:
        op.add_column("steps", Column("warnings", JSON))
