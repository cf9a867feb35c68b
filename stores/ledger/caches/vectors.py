"""Vectors by model and text, so that none is computed twice."""

import hashlib
import time
from collections.abc import Collection, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from sqlalchemy import Table, bindparam, delete, func, select, tuple_, update
from sqlalchemy.dialects import postgresql, sqlite

from callslip.stores.ledger.base import schema
from callslip.stores.ledger.base.database import Database
from callslip.stores.ledger.documents.chunks import IDS_PER_STATEMENT

_T = schema.vectors.c
Vector = npt.NDArray[np.float32]

TOUCH_SECONDS = 86_400.0
"""Seconds of precision of a vector's last use, so that a read rarely needs a write."""

PER_TRANSACTION = 1000
"""Rows that one transaction deletes; workers wait for SQLite's write lock in the meantime."""


Key = tuple[str, str]
"""The name of a model and the hash of a text."""

_KNOWN = select(_T.model, _T.text_hash, _T.vector, _T.used_at).where(
    _T.text_hash.in_(bindparam("hashes", expanding=True))
)


def text_hash(text: str) -> str:
    """The key of a text."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


class Vectors:
    """The cache of computed vectors; it can be lost without losing data."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, keys: Collection[Key]) -> dict[Key, Vector]:
        """The vectors that are cached of these."""
        vectors: dict[Key, Vector] = {}
        stale: list[Key] = []
        before = time.time() - TOUCH_SECONDS
        wanted, hashes = set(keys), sorted({text_hash for _, text_hash in keys})
        with self._database.reading() as connection:
            for start in range(0, len(hashes), IDS_PER_STATEMENT):
                some = hashes[start : start + IDS_PER_STATEMENT]
                for row in connection.execute(_KNOWN, {"hashes": some}):
                    key = row.model, row.text_hash
                    if key in wanted:
                        vectors[key] = np.frombuffer(row.vector, np.float32)
                        if row.used_at < before:
                            stale.append(key)
        if stale:
            touch(self._database, schema.vectors, stale)
        return vectors

    def put(self, vectors: Mapping[Key, Vector]) -> None:
        """Store vectors in one transaction."""
        keep_rows(
            self._database,
            schema.vectors,
            {key: {"vector": v.astype(np.float32).tobytes()} for key, v in vectors.items()},
        )

    def trim(self, rows: int) -> int:
        """Keep the `rows` most recently used vectors, and return the number of deleted ones."""
        return drop_surplus(self._database, schema.vectors, rows)


def keep_rows(
    database: Database, cache: Table, contents: Mapping[Key, Mapping[str, object]]
) -> None:
    """Insert rows into a cache as just used; existing rows stay unchanged."""
    if not contents:
        return
    dialect = sqlite if database.is_sqlite else postgresql
    now = time.time()
    rows = [
        {"text_hash": text_hash, "model": model, "used_at": now, **content}
        for (model, text_hash), content in sorted(
            contents.items(), key=lambda item: item[0][::-1]
        )  # in one order: no two transactions deadlock
    ]
    with database.writing() as connection:
        connection.execute(dialect.insert(cache).on_conflict_do_nothing(), rows)


def touch(database: Database, cache: Table, keys: Sequence[Key]) -> None:
    """Record that rows of a cache were used now."""
    now, of = time.time(), cache.c
    with database.writing() as connection:
        for start in range(0, len(keys), IDS_PER_STATEMENT):
            some = keys[start : start + IDS_PER_STATEMENT]
            connection.execute(
                update(cache).where(tuple_(of.model, of.text_hash).in_(some)).values(used_at=now)
            )


def drop_surplus(database: Database, cache: Table, rows: int) -> int:
    """Keep the `rows` most recently used rows of a cache; return the number of deleted rows."""
    with database.reading() as connection:
        surplus = (connection.scalar(select(func.count()).select_from(cache)) or 0) - rows
    key = cache.c.text_hash, cache.c.model
    dropped = 0
    while dropped < surplus:
        some = min(PER_TRANSACTION, surplus - dropped)
        oldest = select(*key).order_by(cache.c.used_at).limit(some)
        with database.writing() as connection:
            gone = connection.execute(delete(cache).where(tuple_(*key).in_(oldest))).rowcount
        if not gone:  # rows left meanwhile by other ways
            break
        dropped += gone
    return dropped
