"""One door to the ledger's database: SQLite in WAL mode, or PostgreSQL."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, func, insert, select
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError

from callslip.errors import SettingsError, StoreDown
from stores.ledger import schema

BUSY_SECONDS = 30.0
"""How long a writer waits for SQLite's single write lock before it gives up."""

_MAPPED_BYTES = 2**30
"""Of SQLite's file, read without a copy: it lies in the kernel's cache anyway. Of 300 chunks in
100,000 it takes half the time to say which are live."""

CREATE_LOCK = 0x_CA11_5119
"""PostgreSQL's advisory lock while the tables are made."""


class Database:
    """Transactions on the ledger. One per process, made after the fork.

    `writing` takes SQLite's write lock at once (BEGIN IMMEDIATE), so that what a transaction read
    still holds when it writes; on PostgreSQL rows are locked by the statements themselves.
    """

    def __init__(self, url: str) -> None:
        self._writer = _engine(url)
        self._reader = self._writer.execution_options(isolation_level="AUTOCOMMIT")
        self.is_sqlite = self._writer.dialect.name == "sqlite"
        self._observer = self._writer.execution_options(
            **{"deferred": True} if self.is_sqlite else {"isolation_level": "REPEATABLE READ"}
        )
        if self.is_sqlite:
            event.listen(self._writer, "connect", _prepare_sqlite)
            event.listen(self._writer, "begin", _begin)

    def create(self) -> None:
        """Make what is missing. Idempotent; a ledger of another version is a SettingsError."""
        with self.writing() as connection:
            if not self.is_sqlite:  # its tables are not made twice at once, SQLite's never are
                connection.execute(select(func.pg_advisory_xact_lock(CREATE_LOCK)))
            schema.metadata.create_all(connection)
            found = connection.scalar(select(schema.about.c.schema_version))
            if found is None:
                connection.execute(
                    insert(schema.about).values(schema_version=schema.SCHEMA_VERSION)
                )
            elif found != schema.SCHEMA_VERSION:
                raise SettingsError(
                    f"the ledger has schema version {found},"
                    f" this Callslip works with {schema.SCHEMA_VERSION}",
                    hint="Run the Callslip version that made it, or point ledger.url elsewhere.",
                )

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction: all of the block or nothing."""
        with _translated(), self._writer.begin() as connection:
            yield connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Single statements that never wait for a writer."""
        with _translated(), self._reader.connect() as connection:
            yield connection

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """Reading statements that all see the same moment, and never wait for a writer."""
        with _translated(), self._observer.begin() as connection:
            yield connection

    def close(self) -> None:
        """Give back every connection."""
        self._writer.dispose()


def _engine(url: str) -> Engine:
    if url.startswith("sqlite:///"):
        Path(url.removeprefix("sqlite:///")).parent.mkdir(parents=True, exist_ok=True)
        return create_engine(url, connect_args={"timeout": BUSY_SECONDS})
    return create_engine(url, pool_pre_ping=True)


def _prepare_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # SQLAlchemy's begin event opens transactions, not the driver
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA foreign_keys=ON")
    connection.execute(f"PRAGMA mmap_size={_MAPPED_BYTES}")


def _begin(connection: Connection) -> None:
    options = connection.get_execution_options()
    if options.get("isolation_level") != "AUTOCOMMIT":
        connection.exec_driver_sql("BEGIN" if options.get("deferred") else "BEGIN IMMEDIATE")


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except IntegrityError:
        raise
    except OperationalError as error:
        raise StoreDown(f"the ledger does not answer: {type(error.orig).__name__}") from error
    except DBAPIError as error:
        if error.connection_invalidated:
            raise StoreDown("the ledger closed the connection") from error
        raise
