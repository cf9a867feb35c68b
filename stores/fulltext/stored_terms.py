"""The analyzed terms, properties and a copy of each chunk in a Tantivy index, stored for reading.

Tantivy could store them itself, but then every hit's id would be read from a block of texts: a
query took 1.2 ms instead of 0.3 ms at 30,000 chunks.
"""

import json
import os
import sqlite3
import threading
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

_IDS_PER_STATEMENT = 500

_COLUMNS = ("terms", "properties", "copies")
"""Each is a table, so that to read one does not read past the others."""

_MAPPED_BYTES = 2**30
"""The bytes of the file that are read without a copy: they are in the kernel's cache anyway."""


class StoredTerms:
    """A SQLite file that threads and processes share. Methods raise sqlite3.Error."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._readers = threading.local()

    def put(self, entries: Iterable[tuple[str, str, Mapping[str, object], str]]) -> None:
        """Store chunks as (id, terms, properties, copy). An existing id replaces the chunk."""
        rows = [(i, terms, _dump(properties), _packed(c)) for i, terms, properties, c in entries]
        with self._open() as connection:
            for at, column in enumerate(_COLUMNS, 1):
                connection.executemany(
                    f"INSERT OR REPLACE INTO {column} VALUES (?, ?)",  # noqa: S608
                    ((row[0], row[at]) for row in rows),
                )

    def get(self, chunk_ids: Sequence[str]) -> dict[str, str]:
        """The terms of these chunks, by id. Ignores unknown ids."""
        return self._read("terms", chunk_ids)

    def properties(self, chunk_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        """The properties of these chunks, by id. Ignores unknown ids."""
        values_by_id = self._read("properties", chunk_ids)
        return {chunk_id: json.loads(stored) for chunk_id, stored in values_by_id.items()}

    def copies(self, chunk_ids: Sequence[str]) -> dict[str, str]:
        """The copies of these chunks, by id. Ignores unknown ids, and chunks without a copy."""
        stored = self._read("copies", chunk_ids)
        return {chunk_id: _unpacked(copy) for chunk_id, copy in stored.items() if copy}

    def delete(self, chunk_ids: Iterable[str]) -> None:
        """Delete all that is stored of these chunks."""
        ids = [(chunk_id,) for chunk_id in chunk_ids]
        with self._open() as connection:
            for column in _COLUMNS:
                connection.executemany(f"DELETE FROM {column} WHERE chunk_id = ?", ids)  # noqa: S608

    def all(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """The id, terms and properties of every chunk that has both."""
        with self._open() as connection:
            query = "SELECT chunk_id, terms, properties FROM terms JOIN properties USING (chunk_id)"
            for chunk_id, terms, stored in connection.execute(query):
                yield chunk_id, terms, json.loads(stored)

    def rewrite(self) -> None:
        """Write the file anew, without the pages of deleted rows."""
        with closing(sqlite3.connect(self._path, timeout=30)) as connection:
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _read(self, column: str, chunk_ids: Sequence[str]) -> dict[str, Any]:
        values_by_id: dict[str, Any] = {}
        for start in range(0, len(chunk_ids), _IDS_PER_STATEMENT):
            some = chunk_ids[start : start + _IDS_PER_STATEMENT]
            marks = ", ".join("?" * len(some))
            query = f"SELECT chunk_id, {column} FROM {column} WHERE chunk_id IN ({marks})"  # noqa: S608
            values_by_id |= dict(self._reader().execute(query, some).fetchall())
        return values_by_id

    def _reader(self) -> sqlite3.Connection:
        """The connection of this thread, reused while the process and the file are the same.

        A new connection reads the properties of 300 chunks among 100,000 in 7 ms, a reused one
        in 1 ms.
        """
        here = os.getpid(), _inode(self._path)
        reader: _Reader | None = getattr(self._readers, "reader", None)
        if reader is None or reader.here != here:
            with self._open():  # creates the missing tables
                here = os.getpid(), _inode(self._path)
            reader = self._readers.reader = _Reader(self._path, here)
        return reader.connection

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        connection = sqlite3.connect(self._path, timeout=30)
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            for column in _COLUMNS:
                connection.execute(
                    f"CREATE TABLE IF NOT EXISTS {column}"
                    f" (chunk_id TEXT PRIMARY KEY, {column} TEXT NOT NULL) WITHOUT ROWID"
                )
            with connection:
                yield connection
        finally:
            connection.close()


def _dump(properties: Mapping[str, object]) -> str:
    return json.dumps(properties, ensure_ascii=False, separators=(",", ":"))


def _packed(copy: str) -> bytes | str:
    """Compress a copy; the empty text of a chunk without one stays. Ten copies take .1 ms to read.

    Terms and properties of hundreds of chunks are read for a search, so those are not compressed.
    """
    return zlib.compress(copy.encode(), 1) if copy else ""


def _unpacked(stored: bytes | str) -> str:
    """Return a copy, also one that was stored as text before copies were compressed."""
    return stored if isinstance(stored, str) else zlib.decompress(stored).decode()


class _Reader:
    """A connection that closes with its last reference; `here` is its process id and inode."""

    def __init__(self, path: Path, here: tuple[int, int]) -> None:
        self.here = here
        self.connection = sqlite3.connect(path, timeout=30, check_same_thread=False)
        self.connection.execute(f"PRAGMA mmap_size={_MAPPED_BYTES}")

    def __del__(self) -> None:
        if self.here[0] == os.getpid():
            self.connection.close()


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return 0
