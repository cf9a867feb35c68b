"""One SQLite file that threads and processes share. Raises Callslip's errors."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from callslip.errors import InvalidRequest, StoreDown, StoreReadOnly

BUSY_SECONDS = 30.0
"""How long a writer waits for another writer, which writes a slice of a batch in a second."""

MOST_IDLE = 4
"""The most connections that stay open for their next use, each with two file descriptors.

Of another connection SQLite keeps one, for the next that is opened, while others are open.
"""

_READ_ONLY = ("SQLITE_READONLY", "SQLITE_FULL", "SQLITE_PERM")
_DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB")


class Database:
    """Transactions on an existing file; `what` names the file's contents in error messages.

    Connections are opened at the first use, after a fork, and reused.
    """

    def __init__(self, path: Path, what: str) -> None:
        self.path = path
        self._what = what
        self._idle: list[sqlite3.Connection] = []
        self._closed = False

    def create(self, tables: str) -> None:
        """Create the file with its tables. No other process may do so at the same time."""
        with self._answering():
            connection = sqlite3.connect(self.path, timeout=BUSY_SECONDS)
            try:
                connection.execute("PRAGMA journal_mode=WAL")
                connection.executescript(f"BEGIN IMMEDIATE; {tables} COMMIT;")
            finally:
                connection.close()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A transaction that reads the state at its first statement. Never waits for a writer."""
        with self._answering(), self._connection() as connection:
            connection.execute("BEGIN")
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that writes all of the block or nothing; it ends with the data on disk."""
        with self._answering(), self._connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")

    def rewrite(self) -> None:
        """Write the file anew, without the pages of deleted rows."""
        with self._answering(), self._connection() as connection:
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close every connection; a connection in use is closed after its use."""
        self._closed = True
        self._close_idle(but=0)

    def _close_idle(self, but: int) -> None:
        while len(self._idle) > but:
            with suppress(IndexError):  # another thread took the last one
                self._idle.pop().close()

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._open()
        try:
            yield connection
        except sqlite3.Error:
            connection.close()
            raise
        finally:
            with suppress(sqlite3.ProgrammingError):  # closed above
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                self._idle.append(connection)
            self._close_idle(but=0 if self._closed else MOST_IDLE)

    def _open(self) -> sqlite3.Connection:
        mode = "rw"
        if not (os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK)):
            # Without a write-ahead log nobody writes. SQLite cannot create the log's index here.
            wal = self.path.with_name(f"{self.path.name}-wal")
            mode = "ro" if wal.exists() else "ro&immutable=1"
        connection = sqlite3.connect(
            f"{self.path.absolute().as_uri()}?mode={mode}",
            uri=True,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,  # threads take turns
        )
        connection.execute("PRAGMA synchronous=FULL")
        return connection

    @contextmanager
    def _answering(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            name = getattr(error, "sqlite_errorname", type(error).__name__)
            if name.startswith(_READ_ONLY):
                raise StoreReadOnly(f"{self._what} takes nothing: {name}.") from error
            if name.startswith(_DAMAGED):
                raise StoreDown(
                    f"The database of {self._what} is damaged ({name}).",
                    hint=f"Bring {self.path.parent.name}/{self.path.name} back from a copy,"
                    " or drop what it holds and ingest it again.",
                ) from error
            if name.startswith("SQLITE_BUSY"):
                raise StoreDown(
                    f"{self._what} was being written for {BUSY_SECONDS:g} s."
                ) from error
            raise StoreDown(f"The database of {self._what} cannot be used ({name}).") from error
        except UnicodeEncodeError as error:
            raise InvalidRequest("A name or an id is not valid Unicode.") from error
