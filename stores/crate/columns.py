"""Properties as typed columns: `metadata['text']['title']`, `metadata['numbers']['years']`.

`metadata` has one object for each type of value, so that values of different types never share a
column; the object has one column for each property name, so that each is indexed. A table has a
limited number of columns. If they are used up, further names are in `metadata['rare']`, which is
not indexed: filters on these names read every row, with the same result.
"""

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from callslip.stores.crate.connection import ColumnsChanged, Connection, RelationMissing, Sql
from callslip.stores.properties.terms import property_terms
from callslip.stores.records import FILTERABLE

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
"""The object in `metadata` and the column type of each mark of a property term.

Dates are microseconds.
"""

RARE = "rare"

MAX_COLUMNS = 1000
"""The most columns of a table. With twice as many, every change of the cluster's state is slow."""

_PARENTS = 2
"""The columns above a property's column, which the server counts again when it checks its limit."""

_LONGEST_KEY = 120

Name = tuple[str, str]
"""The mark and the name of a property."""


def key(name: str) -> str:
    """Encode a property's name as a column name: letters, digits, `_`, `-` and space.

    Any other character, such as a dot or a bracket, becomes `%`, its hexadecimal code and `;`; long
    names are hashed.
    """
    plain = re.sub(r"[^\w -]|^_", lambda match: f"%{ord(match[0]):x};", name)
    if len(plain) <= _LONGEST_KEY:
        return plain
    return f"%{hashlib.sha256(name.encode()).hexdigest()}"


def path(mark: str, name: str) -> str:
    """The column of a property, in SQL."""
    return f"\"metadata\"['{KINDS[mark][0]}']['{key(name)}']"


def definition() -> str:
    """The objects of `metadata`, in SQL, with columns for the fields that every chunk has."""
    numbers = ("level", "ordinal")
    fixed = {"t": [f for f in FILTERABLE if f not in numbers], "n": numbers}
    objects = []
    for mark, (kind, type_) in KINDS.items():
        inner = ", ".join(f'"{name}" {type_}' for name in fixed.get(mark, ()))
        objects.append(f'"{kind}" OBJECT(DYNAMIC)' + (f" AS ({inner})" if inner else ""))
    return ", ".join([*objects, f'"{RARE}" OBJECT(IGNORED)'])


@dataclass(frozen=True)
class Columns:
    """The columns of one table, as the server last listed them."""

    known: frozenset[tuple[str, str]]
    """Pairs of an object in `metadata` and a key."""

    count: int
    """The number of all columns."""

    @property
    def room(self) -> int:
        """The number of columns of one type that can be added."""
        return max(0, MAX_COLUMNS - _PARENTS - self.count)

    def has(self, item: Name) -> bool:
        """Tell whether a property has its own column."""
        return (KINDS[item[0]][0], key(item[1])) in self.known

    def find(self, mark: str, name: str) -> str | None:
        """The SQL expression of a property's values; None if no chunk has the property."""
        if self.has((mark, name)):
            return path(mark, name)
        return None if self.room else f"\"metadata\"['{RARE}']['{mark}:{key(name)}']"

    def metadata(self, properties: Mapping[str, object]) -> dict[str, dict[str, object]]:
        """The value of `metadata` for these properties; a list has each value once."""
        columns: dict[str, dict[str, object]] = {}
        for mark, name, value in property_terms(properties):
            if self.has((mark, name)):
                object_, at = columns.setdefault(KINDS[mark][0], {}), key(name)
            else:
                object_, at = columns.setdefault(RARE, {}), f"{mark}:{key(name)}"
            if mark.islower():
                object_[at] = value
            else:
                members = object_.setdefault(at, [])
                if isinstance(members, list) and value not in members:
                    members.append(value)
        return columns


class TableColumns:
    """A cache of one table's columns. Columns are only added, never removed."""

    def __init__(self, connection: Connection, schema: str, table: str) -> None:
        self._connection = connection
        self._schema = schema
        self._table = table
        self._columns = Columns(frozenset(), 0)

    def having(self, names: Collection[Name]) -> Columns:
        """The columns, read again unless each of these names has a column."""
        if not all(self._columns.has(item) for item in names):
            self._refresh()
        return self._columns

    def making(self, names: Collection[Name]) -> Columns:
        """The columns, after adding a column for each of these names while the table has room.

        The server's own limit decides, so that two writers never disagree on the column of a name.
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
    """The marks and names of all properties of these chunks."""
    return {(mark, name) for properties in chunks for mark, name, _ in property_terms(properties)}
