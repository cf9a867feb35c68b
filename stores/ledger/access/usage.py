"""What the keys of each name have used on a day, for quotas that survive a restart."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Connection, and_, delete, select, true
from sqlalchemy.dialects import postgresql, sqlite

from callslip.stores.ledger.base.access_tables import key_usage
from callslip.stores.ledger.base.database import Database

_U = key_usage.c

DAY_SECONDS = 86_400


@dataclass(frozen=True)
class Used:
    """Numbers of requests, submitted documents, their bytes, and tokens of language models."""

    requests: int = 0
    documents: int = 0
    bytes: int = 0
    tokens: int = 0

    def __add__(self, other: "Used") -> "Used":
        return Used(
            self.requests + other.requests,
            self.documents + other.documents,
            self.bytes + other.bytes,
            self.tokens + other.tokens,
        )


class KeyUsage:
    """Reserves and returns the usage of keys."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def reserve(
        self, name: str, day: int, more: Used, *, documents: int | None, size: int | None
    ) -> bool:
        """Add documents and bytes unless that exceeds a limit; whether they were added.

        The statement itself checks the limits, so that no two requests pass together. A limit of
        None means no limit; `size` is that of the bytes.
        """
        if documents is not None and more.documents > documents:
            return False
        if size is not None and more.bytes > size:
            return False
        within = [
            _U[column] + getattr(more, column) <= limit
            for column, limit in (("documents", documents), ("bytes", size))
            if limit is not None
        ]
        with self._database.writing() as connection:
            upsert = _upsert(self._database, name, day, more, where=and_(true(), *within))
            return connection.scalar(upsert.returning(_U.documents)) is not None

    def give_back(self, name: str, day: int, used: Used) -> None:
        """Subtract documents and bytes that were reserved and not stored."""
        less = Used(documents=-used.documents, bytes=-used.bytes)
        with self._database.writing() as connection:
            add_used(self._database, connection, {(name, day): less})

    def of(self, name: str, day: int) -> Used:
        """The usage of a name on a day."""
        with self._database.reading() as connection:
            query = select(_U.requests, _U.documents, _U.bytes, _U.tokens)
            row = connection.execute(query.where(_U.name == name, _U.day == day)).one_or_none()
        return Used(*row) if row else Used()

    def trim(self, before: float) -> None:
        """Delete the usage of the days before this time."""
        with self._database.writing() as connection:
            connection.execute(delete(key_usage).where(_U.day < int(before // DAY_SECONDS)))


def add_used(
    database: Database, connection: Connection, used: Mapping[tuple[str, int], Used]
) -> None:
    """Add usage, by the name of the key and the day in UTC since 1970."""
    for (name, day), more in sorted(used.items(), key=lambda each: each[0]):
        connection.execute(_upsert(database, name, day, more))


def _upsert(database: Database, name: str, day: int, more: Used, where: Any = None) -> Any:
    dialect = sqlite if database.is_sqlite else postgresql
    numbers = asdict(more)
    insert = dialect.insert(key_usage).values(name=name, day=day, **numbers)
    return insert.on_conflict_do_update(
        index_elements=[_U.name, _U.day],
        set_={each: _U[each] + count for each, count in numbers.items()},
        where=where,
    )
