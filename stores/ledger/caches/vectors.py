"""Vectors by model and text, so that none is computed twice."""

import hashlib
import time
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from sqlalchemy import Connection, Table, bindparam, delete, func, select, tuple_, update
from sqlalchemy.dialects import postgresql, sqlite

from callslip.stores.ledger.base import schema
from callslip.stores.ledger.base.database import Database
from callslip.stores.ledger.documents.chunks import IDS_PER_STATEMENT

_T = schema.vectors.c
Vector = npt.NDArray[np.float32]

TOUCH_SECONDS = 86_400.0
"""Seconds of precision of a vector's last use, so that a read rarely needs a write."""


_KNOWN = select(_T.text_hash, _T.vector, _T.used_at).where(
    _T.model == bindparam("model"), _T.text_hash.in_(bindparam("hashes", expanding=True))
)


def text_hash(text: str) -> str:
    """The key of a text."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


class Vectors:
    """The cache of computed vectors; it can be lost without losing data."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, model: str, text_hashes: Sequence[str]) -> dict[str, Vector]:
        """The cached vectors of these texts, by hash of the text."""
        vectors: dict[str, Vector] = {}
        stale: list[str] = []
        before = time.time() - TOUCH_SECONDS
        with self._database.reading() as connection:
            for start in range(0, len(text_hashes), IDS_PER_STATEMENT):
                some = list(text_hashes[start : start + IDS_PER_STATEMENT])
                rows = connection.execute(_KNOWN, {"model": model, "hashes": some})
                for row in rows:
                    vectors[row.text_hash] = np.frombuffer(row.vector, np.float32)
                    if row.used_at < before:
                        stale.append(row.text_hash)
        if stale:
            touch(self._database, schema.vectors, model, stale)
        return vectors

    def put(self, model: str, vectors: Mapping[str, Vector]) -> None:
        """Store vectors by hash of their text."""
        keep_rows(
            self._database,
            schema.vectors,
            model,
            {key: {"vector": v.astype(np.float32).tobytes()} for key, v in vectors.items()},
        )

    def trim(self, rows: int) -> int:
        """Keep the `rows` most recently used vectors, and return the number of deleted ones."""
        with self._database.writing() as connection:
            return drop_surplus(connection, schema.vectors, rows)


def keep_rows(
    database: Database, cache: Table, model: str, contents: Mapping[str, Mapping[str, object]]
) -> None:
    """Insert rows into a cache, by hash of the text, as just used; existing rows stay unchanged."""
    if not contents:
        return
    dialect = sqlite if database.is_sqlite else postgresql
    made: dict[str, object] = {"model": model, "used_at": time.time()}
    rows = [
        {"text_hash": key, **made, **content}
        for key, content in sorted(contents.items())  # in one order: no two transactions deadlock
    ]
    with database.writing() as connection:
        connection.execute(dialect.insert(cache).on_conflict_do_nothing(), rows)


def touch(database: Database, cache: Table, model: str, text_hashes: Sequence[str]) -> None:
    """Record that rows of a cache were used now."""
    now, of = time.time(), cache.c
    with database.writing() as connection:
        for start in range(0, len(text_hashes), IDS_PER_STATEMENT):
            some = text_hashes[start : start + IDS_PER_STATEMENT]
            connection.execute(
                update(cache).where(of.model == model, of.text_hash.in_(some)).values(used_at=now)
            )


def drop_surplus(connection: Connection, cache: Table, rows: int) -> int:
    """Keep the `rows` most recently used rows of a cache; return the number of deleted rows."""
    surplus = (connection.scalar(select(func.count()).select_from(cache)) or 0) - rows
    if surplus <= 0:
        return 0
    key = cache.c.text_hash, cache.c.model
    oldest = select(*key).order_by(cache.c.used_at).limit(surplus)
    return connection.execute(delete(cache).where(tuple_(*key).in_(oldest))).rowcount
