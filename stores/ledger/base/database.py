"""Transactions on the ledger's database: SQLite in WAL mode, or PostgreSQL."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event

from callslip.stores.ledger.base.driver_errors import translated

BUSY_SECONDS = 30.0
"""Seconds that a writer waits for SQLite's single write lock before it fails."""

_MAPPED_BYTES = 2**30
"""Bytes of SQLite's file that are memory-mapped, so that reads of the page cache need no copy. This
halves the time of finding which of 300 chunks in 100,000 are live.
"""


class Database:
    """Transactions on one database. Make one per process, after the fork.

    `writing` takes SQLite's write lock at once (BEGIN IMMEDIATE), so that no other process can
    change what the transaction has read; on PostgreSQL the statements lock rows. `subject` names
    the database in errors.
    """

    def __init__(self, url: str, subject: str = "the ledger") -> None:
        self._subject = subject
        self._writer = _engine(url)
        self.is_sqlite = self._writer.dialect.name == "sqlite"
        # SQLite's connections are without a transaction already; to say so again takes two PRAGMAs.
        self._reader = self._writer.execution_options(
            **{"single": True} if self.is_sqlite else {"isolation_level": "AUTOCOMMIT"}
        )
        self._observer = self._writer.execution_options(
            **{"deferred": True} if self.is_sqlite else {"isolation_level": "REPEATABLE READ"}
        )
        self._shared = threading.local()
        if self.is_sqlite:
            event.listen(self._writer, "connect", _prepare_sqlite)
            event.listen(self._writer, "begin", _begin)

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction: either the whole block takes effect, or nothing of it."""
        with translated(self._subject), self._writer.begin() as connection:
            yield connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection for single statements that never wait for a writer."""
        shared: Connection | None = getattr(self._shared, "connection", None)
        if shared is not None:
            try:
                with translated(self._subject):
                    yield shared
            except BaseException:
                self._shared.connection = None  # the connection may be broken
                raise
            return
        with translated(self._subject), self._reader.connect() as connection:
            yield connection

    @contextmanager
    def one_reader(self) -> Iterator[None]:
        """Let every `reading` of this thread within the block use the same connection.

        To take a connection for one statement and to return it takes twice as long as the
        statement.
        """
        if getattr(self._shared, "connection", None) is not None:
            yield
            return
        with self.reading() as connection:
            self._shared.connection = connection
            try:
                yield
            finally:
                self._shared.connection = None

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """A read transaction: all statements see the same snapshot and never wait for a writer."""
        with translated(self._subject), self._observer.begin() as connection:
            yield connection

    def close(self) -> None:
        """Close every connection."""
        self._writer.dispose()


def _engine(url: str) -> Engine:
    if url.startswith("sqlite:///"):
        Path(url.removeprefix("sqlite:///")).parent.mkdir(parents=True, exist_ok=True)
        return create_engine(url, connect_args={"timeout": BUSY_SECONDS})
    return create_engine(url, pool_pre_ping=True)


def _prepare_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = (
        None  # transactions are opened by SQLAlchemy's begin event, not by the driver
    )
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA foreign_keys=ON")
    connection.execute(f"PRAGMA mmap_size={_MAPPED_BYTES}")


def _begin(connection: Connection) -> None:
    options = connection.get_execution_options()
    if not options.get("single"):
        connection.exec_driver_sql("BEGIN" if options.get("deferred") else "BEGIN IMMEDIATE")
