"""Documents have readers: the audience of each document, and the readers of each audience.

Conversations have owners, and sources the readers of their documents.
"""

from alembic import op
from sqlalchemy import JSON, Boolean, Column, String, false, inspect, text

revision = "0004"
down_revision = "0003"

FINGERPRINT = "01103e21062e83cd"
"""A hash of the statements that make this revision's tables on SQLite and PostgreSQL."""

DUE = "documents_with_readers_due"


def upgrade() -> None:
    """Add the columns, the table and the indexes. Everyone may read every document as before."""
    present = inspect(op.get_bind())
    columns = {column["name"] for column in present.get_columns("documents")}
    if "audience" not in columns:
        audience = Column("audience", String(32), nullable=False, server_default="")
        op.add_column("documents", audience)
    if "readers_due" not in columns:
        due = Column("readers_due", Boolean, nullable=False, server_default=false())
        op.add_column("documents", due)
    if "owner" not in {column["name"] for column in present.get_columns("conversations")}:
        owner = Column("owner", String(256), nullable=False, server_default="")
        op.add_column("conversations", owner)
    if "readers" not in {column["name"] for column in present.get_columns("sources")}:
        op.add_column("sources", Column("readers", JSON))
    if not present.has_table("readers"):
        op.create_table(
            "readers",
            Column("audience", String(32), primary_key=True),
            Column("reader", String(256), primary_key=True),
        )
        op.create_index("ix_readers_reader", "readers", ["reader"])
    if not present.has_table("audiences"):
        op.create_table(
            "audiences",
            Column("collection", String(128), primary_key=True),
            Column("tenant", String(128), primary_key=True),
            Column("audience", String(32), primary_key=True),
        )
    if DUE not in {index["name"] for index in present.get_indexes("documents")}:
        rows = text("readers_due")
        op.create_index(
            DUE, "documents", ["collection", "tenant"], sqlite_where=rows, postgresql_where=rows
        )
