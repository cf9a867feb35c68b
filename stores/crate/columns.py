"""Properties as typed columns: `metadata['text']['title']`, `metadata['numbers']['years']`.

One object for each type of value, so that no property's type ever meets another's, and one column
for each name in it, so that each is indexed. A table takes a limited number of columns. Where they
are used up, further names lie in `metadata['rare']`, which is not indexed: filters on them read
every row, and find the same.
"""

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from stores.atoms import atoms
from stores.crate.connection import ColumnsChanged, Connection, RelationMissing, Sql
from stores.records import FILTERABLE

KINDS: Mapping[str, tuple[str, str]] = {
    "t": ("text", "TEXT"),
    "n": ("number", "DOUBLE PRECISION"),
    "b": ("flag", "BOOLEAN"),
    "d": ("date", "BIGINT"),
    "T": ("texts", "ARRAY(TEXT)"),
    "N": ("numbers", "ARRAY(DOUBLE PRECISION)"),
    "B": ("flags", "ARRAY(BOOLEAN)"),
    "D": ("dates", "ARRAY(BIGINT)"),
}
"""Object in `metadata` and type of column of each mark of an atom; dates are microseconds."""

RARE = "rare"

MAX_COLUMNS = 1000
"""Of one table. At twice as many, every change of the cluster's state gets slow."""

_PARENTS = 2
"""Columns above a property's, which the server counts again when it checks its limit."""

_LONGEST_KEY = 120

Name = tuple[str, str]
"""The mark and the name of a property."""


def key(name: str) -> str:
    """Write a property's name as CrateDB takes it for a column: letters, digits, `_`, `-`, space.

    Any other character, such as its dots and brackets, is `%` with its number; long names are
    hashed.
    """
    plain = re.sub(r"[^\w -]|^_", lambda found: f"%{ord(found[0]):x};", name)
    if len(plain) <= _LONGEST_KEY:
        return plain
    return f"%{hashlib.sha256(name.encode()).hexdigest()}"


def path(mark: str, name: str) -> str:
    """The column of a property, in SQL."""
    return f"\"metadata\"['{KINDS[mark][0]}']['{key(name)}']"


def definition() -> str:
    """The objects of `metadata`, with columns for the fields that every chunk has."""
    numbers = ("level", "ordinal")
    fixed = {"t": [f for f in FILTERABLE if f not in numbers], "n": numbers}
    objects = []
    for mark, (kind, type_) in KINDS.items():
        inner = ", ".join(f'"{name}" {type_}' for name in fixed.get(mark, ()))
        objects.append(f'"{kind}" OBJECT(DYNAMIC)' + (f" AS ({inner})" if inner else ""))
    return ", ".join([*objects, f'"{RARE}" OBJECT(IGNORED)'])


@dataclass(frozen=True)
class Columns:
    """The columns of one table, as they were when it was asked."""

    known: frozenset[tuple[str, str]]
    """Object in `metadata` and key."""

    count: int
    """Of all columns."""

    @property
    def room(self) -> int:
        """How many more the server takes of one type."""
        return max(0, MAX_COLUMNS - _PARENTS - self.count)

    def has(self, item: Name) -> bool:
        """Tell whether a property has a column of its own."""
        return (KINDS[item[0]][0], key(item[1])) in self.known

    def find(self, mark: str, name: str) -> str | None:
        """Where a property's values are, in SQL; None where no chunk has it."""
        if self.has((mark, name)):
            return path(mark, name)
        return None if self.room else f"\"metadata\"['{RARE}']['{mark}:{key(name)}']"

    def metadata(self, properties: Mapping[str, object]) -> dict[str, dict[str, object]]:
        """Lay properties out for `metadata`; a list holds each value once."""
        found: dict[str, dict[str, object]] = {}
        for mark, name, value in atoms(properties):
            if self.has((mark, name)):
                place, at = found.setdefault(KINDS[mark][0], {}), key(name)
            else:
                place, at = found.setdefault(RARE, {}), f"{mark}:{key(name)}"
            if mark.islower():
                place[at] = value
            else:
                members = place.setdefault(at, [])
                if isinstance(members, list) and value not in members:
                    members.append(value)
        return found


class TableColumns:
    """What is known of one table's columns; only ever more come to it."""

    def __init__(self, connection: Connection, schema: str, table: str) -> None:
        self._connection = connection
        self._schema = schema
        self._table = table
        self._columns = Columns(frozenset(), 0)

    def having(self, names: Collection[Name]) -> Columns:
        """The columns, asked for anew unless each of these has one."""
        if not all(self._columns.has(item) for item in names):
            self._refresh()
        return self._columns

    def making(self, names: Collection[Name]) -> Columns:
        """The columns, after making those of these names that the table has room for.

        The server's own limit decides, so that two writers never disagree on where a name lies.
        """
        columns = self.having(names)
        while columns.room and (new := sorted(i for i in set(names) if not columns.has(i))):
            mark = new[0][0]
            some = [name for name in new if name[0] == mark][: columns.room]
            added = dict.fromkeys(f"ADD COLUMN {path(*item)} {KINDS[mark][1]}" for item in some)
            statement = f'ALTER TABLE "{self._schema}"."{self._table}" {", ".join(added)}'
            with suppress(ColumnsChanged):  # by another writer
                self._connection.run(Sql(statement))
            self._refresh()
            columns = self._columns
        return columns

    def _refresh(self) -> None:
        rows = self._connection.run(
            Sql(
                "SELECT column_details['path'] AS path FROM information_schema.columns"
                " WHERE table_schema = ? AND table_name = ?",
                (self._schema, self._table),
            )
        )
        if not rows:
            raise RelationMissing
        known = frozenset((path[0], path[1]) for (path,) in rows if path and len(path) == 2)
        self._columns = Columns(known, len(rows))


def names(chunks: Iterable[Mapping[str, object]]) -> set[Name]:
    """The marks and names of all properties."""
    return {(mark, name) for properties in chunks for mark, name, _ in atoms(properties)}
