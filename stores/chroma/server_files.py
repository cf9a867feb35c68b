"""The files of a Chroma server on this machine."""

import sqlite3
from contextlib import closing
from pathlib import Path

DATABASE = "chroma.sqlite3"

REWRITE_SECONDS = 60.0

RENAME_SECONDS = 0.3
"""How long `rename_tenant` waits for a lock."""

_DEFAULT_DATABASE = "00000000-0000-0000-0000-000000000000"
"""The id of the database that each Chroma server makes, of the tenant `default_tenant`."""


def compact_server(folder: Path) -> None:
    """Rewrite the database of a Chroma server in this folder, which keeps deleted rows a while.

    The server may run: both take turns by SQLite's own locks.
    """
    database = folder / DATABASE
    if not database.exists():
        return
    with closing(sqlite3.connect(database, timeout=REWRITE_SECONDS)) as connection:
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def rename_tenant(folder: Path, name: str) -> None:
    """Rename the tenant with all the data of the server in this folder; remove empty tenants.

    The server may run, as it must at its first start, which makes the database. Idempotent, and
    without a write if the tenant has the name. Raises sqlite3.Error if the database is locked or
    cannot be written.
    """
    where = (folder / DATABASE).absolute().as_uri()
    opened = sqlite3.connect(f"{where}?mode=rw", timeout=RENAME_SECONDS, uri=True)
    with closing(opened) as connection:
        query = "SELECT tenant_id FROM databases WHERE id = ?"
        if connection.execute(query, (_DEFAULT_DATABASE,)).fetchone() == (name,):
            return
        with connection:
            connection.execute("INSERT INTO tenants VALUES (?)", (name,))
            connection.execute(
                "UPDATE databases SET tenant_id = ? WHERE id = ?", (name, _DEFAULT_DATABASE)
            )
            connection.execute(
                "DELETE FROM tenants WHERE id NOT IN (SELECT tenant_id FROM databases)"
            )
