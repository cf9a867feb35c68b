"""The part of `env.py` that Alembic runs for each upgrade, in the transaction of the caller."""

from alembic import context


def run() -> None:
    """Run the revisions over the connection that `history.upgrade` passed, without a commit."""
    attributes = context.config.attributes
    context.configure(
        connection=attributes["connection"], version_table=attributes["version_table"]
    )
    with context.begin_transaction():
        context.run_migrations()
