"""Approvals count only if something independent agrees: columns that say what counts.

`outcome_chunks.counts` is null for approvals that counted before this revision, until
`stores.ledger.learning.approvals.weigh_anew` has weighed them by the rule of today; the revision
cannot, because it does not know the setting `memory.half_life_weeks`.
"""

from alembic import op
from sqlalchemy import Boolean, Column, false, inspect, text

revision = "0002"
down_revision = "0001"

FINGERPRINT = "87c9fb0ffd2f6c8e"
"""A hash of the statements that make this revision's tables on SQLite and PostgreSQL."""


INDEX = "outcome_chunks_of_a_chunk"


def upgrade() -> None:
    """Add the columns. A verdict without a key does not count; a person's with a key does."""
    present = inspect(op.get_bind())
    if "by_model" not in {column["name"] for column in present.get_columns("outcomes")}:
        op.add_column(
            "outcomes", Column("by_model", Boolean, nullable=False, server_default=false())
        )
    if "counts" not in {column["name"] for column in present.get_columns("outcome_chunks")}:
        op.add_column("outcome_chunks", Column("counts", Boolean))
    if INDEX not in {index["name"] for index in present.get_indexes("outcome_chunks")}:
        op.create_index(INDEX, "outcome_chunks", ["chunk_id"])
    op.execute(text("UPDATE outcome_chunks SET counts = false WHERE counted_as IS NULL"))
    op.execute(
        text(
            "UPDATE outcome_chunks SET counts = true WHERE counted_as IS NOT NULL AND outcome_id IN"
            " (SELECT outcome_id FROM outcomes WHERE verdict <> 'validated')"
        )
    )
