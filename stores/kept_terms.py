"""The analyzed terms and the properties of each chunk beside a Tantivy index, to give them back.

Tantivy could store them itself, but then every hit's id is read out of a block of texts: a query
took 1.2 ms instead of 0.3 at 30,000 chunks.
"""

import json
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_IDS_PER_STATEMENT = 500
_MAPPED_BYTES = 2**30
"""Of the file, read without a copy: it lies in the kernel's cache anyway."""


class KeptTerms:
    """A SQLite file, which threads and processes share. Raises sqlite3.Error."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._readers = threading.local()

    def put(self, kept: Iterable[tuple[str, str, Mapping[str, object]]]) -> None:
        """Keep id, terms and properties of chunks; the same id again replaces."""
        rows = [(chunk_id, terms, _dump(properties)) for chunk_id, terms, properties in kept]
        with self._open() as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO terms VALUES (?, ?)", (r[:2] for r in rows)
            )
            connection.executemany(
                "INSERT OR REPLACE INTO properties VALUES (?, ?)", (r[::2] for r in rows)
            )

    def get(self, chunk_ids: Sequence[str]) -> dict[str, str]:
        """The terms of those of these chunks that are known."""
        return self._read("terms", chunk_ids)

    def properties(self, chunk_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        """The properties of those of these chunks that are known."""
        found = self._read("properties", chunk_ids)
        return {chunk_id: json.loads(held) for chunk_id, held in found.items()}

    def delete(self, chunk_ids: Iterable[str]) -> None:
        """Forget these chunks."""
        ids = [(chunk_id,) for chunk_id in chunk_ids]
        with self._open() as connection:
            connection.executemany("DELETE FROM terms WHERE chunk_id = ?", ids)
            connection.executemany("DELETE FROM properties WHERE chunk_id = ?", ids)

    def _read(self, kept: str, chunk_ids: Sequence[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        for start in range(0, len(chunk_ids), _IDS_PER_STATEMENT):
            some = chunk_ids[start : start + _IDS_PER_STATEMENT]
            marks = ", ".join("?" * len(some))
            query = f"SELECT chunk_id, {kept} FROM {kept} WHERE chunk_id IN ({marks})"  # noqa: S608
            found |= dict(self._reader().execute(query, some).fetchall())
        return found

    def _reader(self) -> sqlite3.Connection:
        """A connection of this thread's own, kept while the file is the same one.

        Of 300 chunks in 100,000 a new one reads the properties in 7 ms, one that is warm in 1.
        """
        here = os.getpid(), _inode(self._path)
        held: _Reader | None = getattr(self._readers, "held", None)
        if held is None or held.here != here:
            with self._open():  # makes what is missing
                here = os.getpid(), _inode(self._path)
            held = self._readers.held = _Reader(self._path, here)
        return held.connection

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        connection = sqlite3.connect(self._path, timeout=30)
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            for kept in ("terms", "properties"):
                connection.execute(
                    f"CREATE TABLE IF NOT EXISTS {kept}"
                    f" (chunk_id TEXT PRIMARY KEY, {kept} TEXT NOT NULL) WITHOUT ROWID"
                )
            with connection:
                yield connection
        finally:
            connection.close()


def _dump(properties: Mapping[str, object]) -> str:
    return json.dumps(properties, ensure_ascii=False, separators=(",", ":"))


class _Reader:
    """A connection, closed when nobody has it any more; `here` are its process and its file."""

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
