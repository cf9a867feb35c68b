"""Versions have the pages of their text."""

from alembic import op
from sqlalchemy import JSON, Column, inspect

revision = "0005"
down_revision = "0004"

FINGERPRINT = "337825b410611297"
"""A hash of the statements that make this revision's tables on SQLite and PostgreSQL."""


def upgrade() -> None:
    """Add the column. The pages of a document are known when it is ingested again."""
    present = inspect(op.get_bind())
    if "pages" not in {column["name"] for column in present.get_columns("versions")}:
        op.add_column("versions", Column("pages", JSON))
