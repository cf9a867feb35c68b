"""The tables of commit 6253ab1, the last one before revisions were numbered.

The revision adds missing tables, columns and indexes to a ledger that an earlier commit of schema
version 4 made. A ledger of 6253ab1 stays as it is.
"""

from alembic import op
from sqlalchemy import Column, Table, inspect, select

from callslip.errors import LedgerError
from callslip.stores.ledger.migrations.ledger import tables_0001

revision = "0001"
down_revision = None

FINGERPRINT = "045fce76469e8475"
"""A hash of the statements that make this revision's tables on SQLite and PostgreSQL."""

FILL = {("retrieval_events", "basis"): "[]"}
"""The value, as a JSON text, of existing rows in an added column without a default."""


def upgrade() -> None:
    """Add missing tables, columns and indexes."""
    connection = op.get_bind()
    present = inspect(connection)
    names = set(present.get_table_names())
    for table in tables_0001.tables.sorted_tables:
        if table.name not in names:
            table.create(connection)
            continue
        columns = {column["name"] for column in present.get_columns(table.name)}
        for column in table.columns:
            if column.name not in columns:
                _add(table, column)
        indexes = {index["name"] for index in present.get_indexes(table.name)}
        for index in table.indexes:
            if index.name not in indexes:
                index.create(connection)
    about = tables_0001.tables.tables["about"]
    if connection.execute(select(about)).first() is None:
        connection.execute(about.insert().values(schema_version=tables_0001.SCHEMA_VERSION))


def _add(table: Table, column: Column[object]) -> None:
    added: Column[object] = Column(column.name, column.type, nullable=column.nullable)
    if column.nullable:
        op.add_column(table.name, added)
        return
    if column.server_default is not None:
        added.server_default = column.server_default
        op.add_column(table.name, added)
        return
    if (table.name, column.name) not in FILL:
        raise LedgerError(f"the ledger is damaged: {table.name} has no column {column.name!r}")
    with op.batch_alter_table(table.name) as batch:
        filled: Column[object] = Column(
            column.name, column.type, nullable=False, server_default=FILL[table.name, column.name]
        )
        batch.add_column(filled)
    with op.batch_alter_table(table.name) as batch:
        batch.alter_column(column.name, server_default=None)
