"""The script that Alembic runs in this folder."""

from callslip.stores.ledger.migrations.environment import run

run()
