"""Records of searches are compressed, in a column of their own."""

from alembic import op
from sqlalchemy import Column, LargeBinary, inspect

revision = "0007"
down_revision = "0006"

FINGERPRINT = "18443d9103db9b5f"
"""A hash of the statements that make this revision's tables on SQLite and PostgreSQL."""


def upgrade() -> None:
    """Add the column. The records that are there stay as they are until they are deleted."""
    columns = {column["name"] for column in inspect(op.get_bind()).get_columns("retrieval_events")}
    if "packed" not in columns:
        op.add_column("retrieval_events", Column("packed", LargeBinary))
