"""Dumps the rows of the ledger, and loads them into an empty ledger on SQLite or PostgreSQL.

A row is a list of JSON values in the order of `columns`; bytes are base64. The tables in LEFT_OUT
are caches, the state of a move in progress, or secrets of sessions, and are not dumped.
"""

import base64
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

from sqlalchemy import (
    JSON,
    ColumnClause,
    Connection,
    LargeBinary,
    Table,
    TableClause,
    column,
    func,
    insert,
    select,
    table,
    text,
    union_all,
)

from callslip.errors import Conflict
from callslip.stores.ledger.base import memory_tables, outbox_tables
from callslip.stores.ledger.base.database import Database
from callslip.stores.ledger.migrations.history import LEDGER

LEFT_OUT = frozenset({"about", "vectors", "token_vectors", "moves", "copies", "access_secrets"})

ROWS_PER_STATEMENT = 500

TABLES: dict[str, Table] = {
    each.name: each for each in memory_tables.metadata.sorted_tables if each.name not in LEFT_OUT
}
"""The tables that are dumped, each after those that its foreign keys refer to."""

REVISION = LEDGER.newest

Row = list[Any]
"""The values of a row, which JSON can represent."""


def columns(name: str) -> list[str]:
    """The names of a table's columns, in the order of a row's values."""
    return [each.name for each in TABLES[name].columns]


class TableSnapshot:
    """All tables at one moment."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def rows(self, name: str) -> Iterator[Row]:
        """The rows of a table in the order of its key; memory does not grow with the table."""
        plain, encoders = _plain(name), _encoders(name)
        key = [plain.c[each.name] for each in TABLES[name].primary_key]
        query = select(*plain.columns).order_by(*key).execution_options(yield_per=1000)
        for row in self._connection.execute(query):
            yield [encode(value) for encode, value in zip(encoders, row, strict=True)]

    def last_event(self) -> int:
        """The greatest event id that was used, also by events that were deleted since."""
        ids = union_all(
            select(func.max(outbox_tables.events.c.event_id).label("id")),
            select(func.max(outbox_tables.webhooks.c.seen_event)),
            select(func.max(outbox_tables.deliveries.c.event_id)),
        ).subquery()
        return self._connection.scalar(select(func.max(ids.c.id))) or 0


class Tables:
    """The rows of the ledger as a whole."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @contextmanager
    def snapshot(self) -> Iterator[TableSnapshot]:
        """All tables at one moment, while other processes continue to write."""
        with self._database.snapshot() as connection:
            yield TableSnapshot(connection)

    def is_empty(self) -> bool:
        """Whether no table has a row, as in a new ledger."""
        with self._database.snapshot() as connection:
            return not any(
                connection.execute(select(each).limit(1)).first() for each in TABLES.values()
            )

    def counts(self) -> dict[str, int]:
        """The number of rows of each table."""
        with self._database.snapshot() as connection:
            return {
                name: connection.scalar(select(func.count()).select_from(each)) or 0
                for name, each in TABLES.items()
            }

    def load(
        self,
        dump: Iterable[tuple[str, Sequence[str], Iterable[Row]]],
        last_event: int,
        change: Callable[[str, dict[str, Any]], dict[str, Any]] = lambda _, row: row,
    ) -> None:
        """Insert the rows of all tables in one transaction, each table with its columns.

        `change` takes a table's name and a row by column, and returns the row to insert. New events
        get ids after `last_event`. Raises Conflict if the ledger is not empty.
        """
        with self._database.writing() as connection:
            for each in TABLES.values():
                if connection.execute(select(each).limit(1)).first():
                    raise Conflict(f"the ledger is not empty: table {each.name} has rows")
            for name, names, rows in dump:
                plain, decoders = _plain(name), _decoders(name)
                made = (
                    change(name, {n: decoders[n](v) for n, v in zip(names, row, strict=True)})
                    for row in rows
                )
                while some := list(islice(made, ROWS_PER_STATEMENT)):
                    connection.execute(insert(plain), some)
            self._continue_after(connection, last_event)

    def _continue_after(self, connection: Connection, last_event: int) -> None:
        if not last_event:
            return
        if self._database.is_sqlite:
            connection.execute(text("DELETE FROM sqlite_sequence WHERE name = 'events'"))
            add = text("INSERT INTO sqlite_sequence (name, seq) VALUES ('events', :last)")
        else:
            add = text("SELECT setval(pg_get_serial_sequence('events', 'event_id'), :last)")
        connection.execute(add, {"last": last_event})


def _plain(name: str) -> TableClause:
    """The table with its columns by their names in the database; None in JSON is SQL's null."""
    return table(
        name,
        *(
            column(c.name, JSON(none_as_null=True) if isinstance(c.type, JSON) else c.type)
            for c in TABLES[name].columns
        ),
    )


def _encoders(name: str) -> list[Callable[[Any], Any]]:
    return [_to_text if _is_binary(c) else _same for c in TABLES[name].columns]


def _decoders(name: str) -> dict[str, Callable[[Any], Any]]:
    return {c.name: _to_bytes if _is_binary(c) else _same for c in TABLES[name].columns}


def _is_binary(of: ColumnClause[Any]) -> bool:
    return isinstance(of.type, LargeBinary)


def _same(value: Any) -> Any:
    return value


def _to_text(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode()


def _to_bytes(value: str | None) -> bytes | None:
    return None if value is None else base64.b64decode(value)
