"""A CrateDB for tests: a fake of its HTTP interface in a process of its own, or a real server."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from callslip.config.settings import CrateSettings, Settings
from callslip.stores.contract import Store
from callslip.stores.crate.connection import Connection, Sql
from callslip.stores.crate.tables import table_name

REAL_CRATE = "CALLSLIP_TEST_CRATEDB_URL"
"""The address of a real server, where the suite is to run against one too."""


def crate_settings(url: str, schema: str = "callslip", timeout: float = 60.0) -> Settings:
    """Settings of a store at this server."""
    crate = CrateSettings(url=url, schema_name=schema, replicas="0", timeout_seconds=timeout)
    return Settings(crate=crate)


@contextmanager
def schema_at(url: str) -> Iterator[Settings]:
    """A schema of its own on a server, which is dropped at the end."""
    settings = crate_settings(url, f"t{time.monotonic_ns()}")
    yield settings
    with closing(Connection(url, settings.crate.user, None, 60)) as connection:
        for name, kind in tables_in(connection, settings.crate.schema_name):
            what = "VIEW" if kind == "VIEW" else "TABLE"
            connection.run(Sql(f'DROP {what} "{settings.crate.schema_name}"."{name}"'))
        assert tables_in(connection, settings.crate.schema_name) == []


def tables_in(connection: Connection, schema: str) -> list[list[str]]:
    """The names and kinds of the tables and views in a schema."""
    query = "SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = ?"
    return connection.run(Sql(query, (schema,)))


@contextmanager
def crate_server(folder: Path, port: int = 0) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A fake CrateDB on a port of loopback, a free one by default, its journal in the folder."""
    fake = Path(__file__).with_name("fake_crate.py")
    command = [sys.executable, str(fake), str(port), str(folder / "journal")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield f"http://127.0.0.1:{int(server.stdout.readline())}", server
        finally:
            server.kill()


def table_of(store: Store, settings: Settings, collection: str) -> str:
    """The table of a collection's chunks, in SQL."""
    name = table_name(store.schema(collection), "")
    return f'"{settings.crate.schema_name}"."{name}"'
