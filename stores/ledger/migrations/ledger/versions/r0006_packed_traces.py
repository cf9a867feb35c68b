"""Traces are compressed, in a column of their own."""

from alembic import op
from sqlalchemy import Column, LargeBinary, inspect

revision = "0006"
down_revision = "0005"

FINGERPRINT = "35385fee1ea0abb8"
"""A hash of the statements that make this revision's tables on SQLite and PostgreSQL."""


def upgrade() -> None:
    """Add the column. The traces that are there stay as they are until they are forgotten."""
    columns = {column["name"] for column in inspect(op.get_bind()).get_columns("traces")}
    if "packed" not in columns:
        op.add_column("traces", Column("packed", LargeBinary))
