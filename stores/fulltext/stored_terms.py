"""The analyzed terms, properties and a copy of each chunk in a Tantivy index, stored for reading.

Tantivy could store them itself, but then every hit's id would be read from a block of texts: a
query took 1.2 ms instead of 0.3 ms at 30,000 chunks.
"""

import json
import os
import sqlite3
import threading
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from callslip.stores.fulltext.blocks import LARGEST, Packer, Unpacker, cut, size_of
from callslip.stores.fulltext.text_cache import TextCache

_VALUES_PER_STATEMENT = 500

_COLUMNS = {"terms": 2_000, "properties": 2_000, "copies": LARGEST}
"""The bytes of a frame in the blocks of each. A search reads the terms of 40 chunks, and the
properties of 300. Frames of 2,000 bytes make the file a twentieth larger than those of 8,000 and
64,000, and both are read in three quarters of the time.

Each is a table of blocks, so that to read one does not read past the others.

A file of an earlier version also has a table with each of these names, with a row for each chunk.
Its rows are read, and moved to blocks when they are written again or the file is rewritten.
"""

_MOST = 1 << 16
"""More than the chunks of a block. A slot is `_MOST` times the block's number, plus a position."""

_HALF_FULL = LARGEST // 2

_TABLES = (
    "CREATE TABLE IF NOT EXISTS slots (slot INTEGER PRIMARY KEY, chunk_id TEXT NOT NULL UNIQUE)",
    *(
        f"CREATE TABLE IF NOT EXISTS {column}_blocks"
        " (number INTEGER PRIMARY KEY, block BLOB NOT NULL)"
        for column in _COLUMNS
    ),
)

_SLOTS = "SELECT chunk_id, slot FROM slots WHERE chunk_id IN"

_CACHE = TextCache(8_000_000)
"""Of all indexes of a process. A slot has one text for ever: block numbers are used only once."""

MOST_READERS = 8
"""The most threads that read a file at once, each by a connection with two file descriptors.

Closing a connection would not free both: SQLite keeps the descriptor of the database until no other
connection of the process has locked it.
"""

_MAPPED_BYTES = 2**30
"""The bytes of the file that are read without a copy: they are in the kernel's cache anyway."""


class _Stored(NamedTuple):
    """What is stored of a chunk, as texts."""

    chunk_id: str
    terms: str
    properties: str
    copy: str

    def size(self) -> int:
        return sum(len(text.encode()) for text in self)


class StoredTerms:
    """A SQLite file that threads and processes share. Methods raise sqlite3.Error."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._opening = threading.Lock()
        self._readers = _Readers((0, 0))

    def put(self, entries: Iterable[tuple[str, str, Mapping[str, object], str]]) -> None:
        """Store chunks as (id, terms, properties, copy). An existing id replaces the chunk."""
        rows = {i: _Stored(i, terms, _dump(props), copy) for i, terms, props, copy in entries}
        with self._open() as connection:
            _replace(connection, list(rows), list(rows.values()))

    def get(self, chunk_ids: Sequence[str]) -> dict[str, str]:
        """The terms of these chunks, by id. Ignores unknown ids."""
        return self._read("terms", chunk_ids)

    def properties(self, chunk_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        """The properties of these chunks, by id. Ignores unknown ids."""
        values_by_id = self._read("properties", chunk_ids)
        return {chunk_id: json.loads(stored) for chunk_id, stored in values_by_id.items()}

    def copies(self, chunk_ids: Sequence[str]) -> dict[str, str]:
        """The copies of these chunks, by id. Ignores unknown ids, and chunks without a copy."""
        return {i: copy for i, copy in self._read("copies", chunk_ids).items() if copy}

    def delete(self, chunk_ids: Iterable[str]) -> None:
        """Delete all that is stored of these chunks."""
        with self._open() as connection:
            _replace(connection, list(chunk_ids), [])

    def all(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """The id, terms and properties of every chunk that has both."""
        unpacker = Unpacker()
        with self._open() as connection:
            for (number,) in connection.execute("SELECT number FROM terms_blocks").fetchall():
                for row in _members(connection, unpacker, number):
                    yield row.chunk_id, row.terms, json.loads(row.properties)
            for row in _rows(connection):
                yield row.chunk_id, row.terms, json.loads(row.properties)

    def rewrite(self) -> None:
        """Write the file anew, without the pages of deleted rows and with all rows in blocks."""
        with self._open() as connection:
            if rows := list(_rows(connection)):
                _replace(connection, [row.chunk_id for row in rows], rows)
        with closing(sqlite3.connect(self._path, timeout=30)) as connection:
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close the connections that no thread uses; the others close after their use."""
        self._readers = _Readers((0, 0))

    def _read(self, column: str, chunk_ids: Sequence[str]) -> dict[str, str]:
        readers = self._current()
        with readers.snapshot(self._path) as (connection, has_rows):
            texts: dict[str, str] = {}
            if has_rows:
                query = f"SELECT chunk_id, {column} FROM {column} WHERE chunk_id IN"  # noqa: S608
                rows = _select(connection, query, chunk_ids)
                texts |= {chunk_id: _plain(stored) for chunk_id, stored in rows}
            slots = dict(_select(connection, _SLOTS, chunk_ids))
            cached = _CACHE.get(readers.file, column, slots.values())
            read = _unpacked(connection, column, [n for n in slots.values() if n not in cached])
        _CACHE.add(readers.file, column, read)
        cached |= read
        return texts | {i: cached[slot] for i, slot in slots.items() if slot in cached}

    def _current(self) -> "_Readers":
        """The connections to the file, reused while the process and the file are the same.

        A new connection reads the properties of 300 chunks among 100,000 in 7 ms, a reused one
        in 1 ms.
        """
        here, readers = self._here(), self._readers
        if readers.here == here:
            return readers
        with self._opening:
            readers = self._readers  # another thread may close them at any time
            if readers.here != self._here():
                with self._open():  # creates the missing tables
                    here = self._here()
                readers = self._readers = _Readers(here)
            return readers

    def _here(self) -> tuple[int, int]:
        return os.getpid(), _inode(self._path)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        connection = sqlite3.connect(self._path, timeout=30)
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            for table in _TABLES:
                connection.execute(table)
            if _has_rows(connection):  # the first versions had the first table alone
                for column in _COLUMNS:
                    connection.execute(_rows_table(column))
            with connection:
                yield connection
        finally:
            connection.close()


def _replace(
    connection: sqlite3.Connection, chunk_ids: Sequence[str], rows: Sequence[_Stored]
) -> None:
    """Delete what is stored of these chunks, and store the rows.

    The other chunks of the same blocks, and those of a last block that is less than half full, get
    new blocks with the rows. So nothing of a deleted chunk stays in a block.
    """
    connection.execute("BEGIN IMMEDIATE")
    unpacker, gone = Unpacker(), set(chunk_ids)
    ids = [(chunk_id,) for chunk_id in gone]
    if _has_rows(connection):
        for column in _COLUMNS:
            connection.executemany(f"DELETE FROM {column} WHERE chunk_id = ?", ids)  # noqa: S608
    numbers = {
        slot // _MOST
        for each in ids
        for (slot,) in connection.execute("SELECT slot FROM slots WHERE chunk_id = ?", each)
    }
    numbers |= _half_full(connection)
    left = [
        row
        for number in sorted(numbers)
        for row in _members(connection, unpacker, number)
        if row.chunk_id not in gone
    ]
    first = _next(connection)
    for number in numbers:
        low = number * _MOST
        connection.execute("DELETE FROM slots WHERE slot >= ? AND slot < ?", (low, low + _MOST))
        for column in _COLUMNS:
            connection.execute(f"DELETE FROM {column}_blocks WHERE number = ?", (number,))  # noqa: S608
    _insert(connection, [*left, *rows], first)


def _next(connection: sqlite3.Connection) -> int:
    """A number that no block has had; `user_version` is the largest one of deleted blocks."""
    (newest,) = connection.execute("SELECT max(number) FROM terms_blocks").fetchone()
    (deleted,) = connection.execute("PRAGMA user_version").fetchone()
    last = int(max(newest or 0, deleted))
    connection.execute(f"PRAGMA user_version = {last}")
    return last + 1


def _insert(connection: sqlite3.Connection, rows: Sequence[_Stored], first: int) -> None:
    """Store rows in new blocks with numbers from `first`."""
    packer = Packer()
    for number, some in enumerate(cut(rows, [row.size() for row in rows], LARGEST), first):
        low = number * _MOST
        connection.executemany(
            "INSERT INTO slots VALUES (?, ?)",
            ((low + at, row.chunk_id) for at, row in enumerate(some)),
        )
        for at, (column, frame) in enumerate(_COLUMNS.items(), 1):
            connection.execute(
                f"INSERT INTO {column}_blocks VALUES (?, ?)",  # noqa: S608
                (number, packer.pack([row[at] for row in some], frame)),
            )


def _members(connection: sqlite3.Connection, unpacker: Unpacker, number: int) -> Iterator[_Stored]:
    """The chunks of a block."""
    low = number * _MOST
    ids = connection.execute(
        "SELECT chunk_id FROM slots WHERE slot >= ? AND slot < ? ORDER BY slot",
        (low, low + _MOST),
    ).fetchall()
    texts = []
    for column in _COLUMNS:
        query = f"SELECT block FROM {column}_blocks WHERE number = ?"  # noqa: S608
        (block,) = connection.execute(query, (number,)).fetchone()
        texts.append(unpacker.texts(block))
    for (chunk_id,), *stored in zip(ids, *texts, strict=True):
        yield _Stored(chunk_id, *stored)


def _half_full(connection: sqlite3.Connection) -> set[int]:
    """The number of the last block if it is less than half full, so that small batches share it."""
    (last,) = connection.execute("SELECT max(number) FROM terms_blocks").fetchone()
    size = 0
    for column in _COLUMNS:
        query = f"SELECT block FROM {column}_blocks WHERE number = ?"  # noqa: S608
        size += sum(size_of(block) for (block,) in connection.execute(query, (last,)))
    return {last} if last is not None and size < _HALF_FULL else set()


def _select(
    connection: sqlite3.Connection, query: str, values: Sequence[object]
) -> Iterator[tuple[Any, Any]]:
    """The rows of a query that ends with IN, for all of these values."""
    for start in range(0, len(values), _VALUES_PER_STATEMENT):
        some = values[start : start + _VALUES_PER_STATEMENT]
        yield from connection.execute(f"{query} ({', '.join('?' * len(some))})", some)


def _unpacked(connection: sqlite3.Connection, column: str, slots: Iterable[int]) -> dict[int, str]:
    """The texts in these slots."""
    by_block: defaultdict[int, list[int]] = defaultdict(list)
    for slot in slots:
        by_block[slot // _MOST].append(slot)
    query = f"SELECT number, block FROM {column}_blocks WHERE number IN"  # noqa: S608
    unpacker = Unpacker()
    return {
        slot: unpacker.text(number, block, slot % _MOST)
        for number, block in _select(connection, query, list(by_block))
        for slot in by_block[number]
    }


def _has_rows(connection: sqlite3.Connection) -> bool:
    """Tell whether the file has the tables of an earlier version."""
    query = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?"
    return bool(connection.execute(query, ("terms",)).fetchone()[0])


def _rows_table(column: str) -> str:
    return (
        f"CREATE TABLE IF NOT EXISTS {column}"
        f" (chunk_id TEXT PRIMARY KEY, {column} TEXT NOT NULL) WITHOUT ROWID"
    )


def _rows(connection: sqlite3.Connection) -> Iterator[_Stored]:
    """The chunks with terms and properties in the tables of an earlier version."""
    if not _has_rows(connection):
        return
    query = (
        "SELECT chunk_id, terms, properties, coalesce(copies, '') FROM terms"
        " JOIN properties USING (chunk_id) LEFT JOIN copies USING (chunk_id)"
        " ORDER BY properties"  # they begin with the times of the document: its chunks together
    )
    for chunk_id, terms, properties, copy in connection.execute(query):
        yield _Stored(chunk_id, terms, properties, _plain(copy))


def _dump(properties: Mapping[str, object]) -> str:
    return json.dumps(properties, ensure_ascii=False, separators=(",", ":"))


def _plain(stored: bytes | str) -> str:
    """The text in a row of an earlier version, which compressed some copies, each alone."""
    return stored if isinstance(stored, str) else zlib.decompress(stored).decode()


class _Readers:
    """The connections to one file that wait for their next use; one is open from the first use on.

    So the inode of the file is not used again. `here` is the process id and the inode, and `file`
    stands for the file in the keys of cached texts. All of this closes with its last reference:
    a thread that reads meanwhile keeps it until it is done.
    """

    def __init__(self, here: tuple[int, int]) -> None:
        self.here = here
        self.file = object()
        self._idle: list[_Reader] = []
        self._turns = threading.BoundedSemaphore(MOST_READERS)

    @contextmanager
    def snapshot(self, path: Path) -> Iterator[tuple[sqlite3.Connection, bool]]:
        """Let all statements of the block read the same state of the file.

        Also tells whether the file has the tables of an earlier version.
        """
        with self._turns:
            try:
                reader = self._idle.pop()
            except IndexError:
                reader = _Reader(path)
                if _inode(path) != self.here[1]:
                    raise sqlite3.OperationalError(f"{path.name} was replaced") from None
            reader.connection.execute("BEGIN")
            try:
                yield reader.connection, reader.has_rows
            finally:
                reader.connection.rollback()
                self._idle.append(reader)


class _Reader:
    """A connection that closes with its last reference."""

    def __init__(self, path: Path) -> None:
        self._process = os.getpid()
        self.connection = sqlite3.connect(path, timeout=30, check_same_thread=False)
        self.connection.execute(f"PRAGMA mmap_size={_MAPPED_BYTES}")
        self.has_rows = _has_rows(self.connection)

    def __del__(self) -> None:
        if self._process == os.getpid():
            self.connection.close()


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return 0
