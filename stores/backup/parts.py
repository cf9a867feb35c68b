"""Rows as objects: lines of JSON, cut where the lines' content says, so that equal rows repeat.

A cut depends on one line alone. So after an insertion all objects but one are those of the previous
backup, and only that one is written.
"""

import hashlib
import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from callslip.errors import BackupError
from callslip.stores.backup.destination import LARGEST, Destination, parsed
from callslip.stores.backup.manifest import Part

LINES_PER_OBJECT = 1024
"""The mean number of lines of an object."""

MOST_BYTES = 8 << 20


class NameSet:
    """A set of names in a temporary SQLite file, so that memory does not grow with it."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._database = sqlite3.connect("", check_same_thread=False)
        self._database.execute("CREATE TABLE names (name TEXT PRIMARY KEY) WITHOUT ROWID")
        self._database.executemany(
            "INSERT OR IGNORE INTO names VALUES (?)", ((name,) for name in names)
        )

    def add(self, name: str) -> bool:
        """Add a name; False if the set has it already."""
        cursor = self._database.execute("INSERT OR IGNORE INTO names VALUES (?)", (name,))
        return cursor.rowcount > 0

    def __contains__(self, name: str) -> bool:
        return bool(
            self._database.execute("SELECT 1 FROM names WHERE name = ?", (name,)).fetchone()
        )

    def __enter__(self) -> "NameSet":
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()


class Writer:
    """Writes rows as the objects of a part; objects that exist already are not written again."""

    def __init__(self, destination: Destination, present: NameSet, columns: Sequence[str]) -> None:
        self._destination, self._present = destination, present
        self._columns = list(columns)
        self._lines: list[bytes] = []
        self._size = self._rows = 0
        self._objects: list[str] = []

    def add(self, row: Sequence[Any]) -> None:
        """Add a row of JSON values."""
        line = json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        if self._size + len(line) > LARGEST:
            self._cut()
        if len(line) > LARGEST:
            raise BackupError(f"a row has more than {LARGEST} bytes, which no restore reads")
        self._lines.append(line)
        self._size += len(line)
        self._rows += 1
        if zlib.crc32(line) % LINES_PER_OBJECT == 0 or self._size >= MOST_BYTES:
            self._cut()

    def part(self) -> Part:
        """Write what is left, and return the part."""
        self._cut()
        return Part(self._columns, self._rows, self._objects)

    def _cut(self) -> None:
        if not self._lines:
            return
        content = b"".join(self._lines)
        sha256 = hashlib.sha256(content).hexdigest()
        if self._present.add(self._destination.name(sha256)):
            self._destination.put(sha256, [content])
        self._objects.append(sha256)
        self._lines, self._size = [], 0


def rows(destination: Destination, part: Part) -> Iterator[list[Any]]:
    """The rows of a part. Raises BackupError if an object is missing, damaged or too large."""
    for sha256 in part.objects:
        for line in b"".join(destination.read(sha256)).splitlines():
            row = parsed(line, f"a row in object {sha256}")
            if not isinstance(row, list) or len(row) != len(part.columns):
                raise BackupError(f"a row in object {sha256} has not {len(part.columns)} columns")
            yield row
