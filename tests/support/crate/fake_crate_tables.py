"""The fake CrateDB's tables: columns, types, what a row must be, and what a query sees of it."""

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from fake_crate_parse import Refused

MAX_TERM_BYTES = 32_766
MAX_DIMENSION = 2048
MAX_NAME = 255

Path = tuple[str, ...]
Type = Mapping[str, Any]
Row = dict[str, Any]

_WRITES = ("INSERT", "DELETE", "REFRESH", "ALTER", "DROP")


def sql_error(what: str) -> Refused:
    return Refused(f"SQLParseException[{what}]")


def spelled(path: Path) -> str:
    return path[0] + "".join(f"['{part}']" for part in path[1:])


class Table:
    """Rows are in `live` once written, and in `seen`, where queries look, once refreshed."""

    def __init__(
        self,
        name: tuple[str, str],
        columns: Sequence[tuple[Path, Type]],
        keys: list[str],
        settings: Mapping[str, Any],
    ) -> None:
        _check_relation(name)
        self.name = ".".join(name)
        self.columns: dict[Path, Type] = {}
        for path, type_ in columns:
            _check_type(type_)
            self.columns[path] = type_
        self.keys = keys
        self.settings = dict(settings)
        self.live: dict[tuple[str, ...], Row] = {}
        self.seen: dict[tuple[str, ...], Row] = {}
        self.version = 0
        self.written = 0

    def key_of(self, row: Row) -> tuple[Any, ...]:
        """What tells a row from the others: where there is no primary key, its `_id`."""
        return tuple(row.get(name) for name in self.keys or ["_id"])

    def definition(self) -> str:
        """As SHOW CREATE TABLE writes it, without what is within objects."""
        columns = []
        for path, type_ in self.columns.items():
            if len(path) > 1:
                continue
            column = f'   "{path[0]}" {type_["type"].upper()}'
            column += " NOT NULL" if type_.get("required") else ""
            if "analyzer" in type_:
                analyzer = f"      analyzer = '{type_['analyzer']}'"
                column += f" INDEX USING FULLTEXT WITH (\n{analyzer}\n   )"
            columns.append(column)
        return "CREATE TABLE IF NOT EXISTS … (\n" + ",\n".join(columns) + "\n)"

    def _named(self, row: Row) -> str:
        """A primary key of one text is the row's `_id`; any other `_id` is a hash."""
        if len(self.keys) == 1 and isinstance(row.get(self.keys[0]), str):
            return str(row[self.keys[0]])
        seed = [row.get(name) for name in self.keys] or [self.written]
        return hashlib.sha256(repr(seed).encode()).hexdigest()[:20]

    def allow(self, what: str) -> None:
        """Refuse what a block on the table forbids."""
        changes = what in _WRITES[:2]
        blocked = "blocks.read_only" if what in _WRITES else ""
        if self.settings.get(blocked) or (changes and self.settings.get("blocks.write")):
            raise Refused(
                "OperationOnInaccessibleRelationException[The relation"
                f' "{self.name}" doesn\'t support or allow {what} operations]',
                4007,
            )
        if changes and self.settings.get("blocks.read_only_allow_delete"):
            raise Refused(
                "ClusterBlockException[blocked by: [RELATION_READ_DELETE_ONLY/12/"
                "index read-only / allow delete (api)];]",
                4037,
                403,
            )

    def refresh(self) -> None:
        self.allow("REFRESH")
        self.seen = dict(self.live)
        self.version += 1

    def type_of(self, path: Path) -> Type:
        """The type of a column; of anything in an ignored object there is none."""
        if path == ("_id",):
            return {"type": "text"}
        if path in self.columns:
            return self.columns[path]
        for end in range(1, len(path)):
            if self.columns.get(path[:end], {}).get("policy") == "ignored":
                if path[end].startswith("_"):
                    raise Refused(
                        "UnsupportedFeatureException[decodeFromBytes not supported]", 4004
                    )
                return {"type": "undefined"}
        raise Refused(f"ColumnUnknownException[Column {spelled(path)} unknown]", 4043, 404)

    def add_columns(self, added: Sequence[tuple[Path, Type]]) -> None:
        self.allow("ALTER")
        paths = [path for path, _ in added]
        for path, _ in added:
            check_key(path[-1])
            if path in self.columns:
                what = f"The table {self.name} already has a column named {spelled(path)}"
                raise sql_error(what)
            if paths.count(path) > 1:
                raise sql_error(f'column "{spelled(path)}" specified more than once')
        parents = {path[:end] for path in paths for end in range(1, len(path))}
        self._check_room(len(added) + len(parents))  # the server counts parents again
        for path, type_ in added:
            self.columns[path] = type_

    def write(self, columns: Sequence[str], values: Sequence[Any], conflict: str) -> int:
        """Write one row; how many were written. Raises Refused for that row alone."""
        row = dict(zip(columns, values, strict=True))
        self.written += 1
        row["_id"] = self._named(row)
        key = self.key_of(row)
        if None in key:
            raise sql_error("A primary key value must not be NULL")
        old = self.live.get(key)  # type: ignore[arg-type]
        if old is not None and conflict == "refuse":
            what = "A document with the same primary key exists already"
            raise Refused(f"DuplicateKeyException[{what}]", 4091, 409)
        if old is not None and conflict == "nothing":
            return 0
        whole = {**(old or {}), **row}
        for path, type_ in list(self.columns.items()):
            if len(path) == 1:
                self._check_stored(path, type_, whole.get(path[0]))
        self.live[key] = whole  # type: ignore[index]
        return 1

    def cast(self, name: str, value: Any) -> Any:
        """Make the value one of the column's type; Refused for the whole call where it is none."""
        return cast(self.type_of((name,)), value)

    def _check_stored(self, path: Path, type_: Type, value: Any) -> None:
        if value is None:
            if type_.get("required"):
                raise sql_error(f'"{spelled(path)}" must not be null')
        elif type_["type"] == "float_vector":
            if len(value) != type_["length"]:
                what = "The number of vector dimensions does not match the field type"
                raise sql_error(what)
        elif type_["type"] == "object" and type_["policy"] == "dynamic":
            for name, inner in value.items():
                at = (*path, name)
                if at not in self.columns:
                    check_key(name)
                    self._check_room(1)
                    self.columns[at] = _guessed(inner)
                value[name] = cast(self.columns[at], inner)
                self._check_stored(at, self.columns[at], value[name])
        elif type_["type"] == "text" or type_.get("of") == "text":
            indexed = type_.get("index", True) and not type_.get("analyzer")
            for text in value if isinstance(value, list) else [value]:
                if indexed and len(text.encode()) > MAX_TERM_BYTES:
                    raise sql_error("Document contains at least one immense term")

    def _check_room(self, more: int) -> None:
        limit = self.settings.get("mapping.total_fields.limit", 1000)
        if len(self.columns) + more > limit:
            what = f"Limit of total columns [{limit}] in table [{self.name}] exceeded"
            raise sql_error(what)


def cast(type_: Type, value: Any) -> Any:
    """Make a value one of a type, as far as CrateDB does so by itself."""
    if value is None:
        return None
    kind = type_["type"]
    try:
        if kind == "array":
            if not isinstance(value, list):
                raise TypeError
            return [cast({"type": type_["of"]}, member) for member in value]
        if kind == "object":
            return dict(value.items())
        if kind == "float_vector":
            if not all(math.isfinite(member) for member in value):
                raise TypeError
            return np.asarray(value, np.float32)
        return _scalar(kind, value)
    except (TypeError, ValueError, AttributeError):
        raise sql_error(f"Cannot cast value `{value}` to type `{kind}`") from None


def check_key(name: str) -> None:
    if "." in name:
        raise Refused(f'InvalidColumnNameException["{name}" contains a dot]', 4008)
    if "[" in name and "]" in name[name.index("[") :]:
        raise Refused(
            f'InvalidColumnNameException["{name}" conflicts with subscript pattern]', 4008
        )


def _scalar(kind: str, value: Any) -> Any:
    if isinstance(value, list | dict) and kind != "undefined":
        raise TypeError
    match kind:
        case "text":
            if isinstance(value, bool):
                return "t" if value else "f"
            return value if isinstance(value, str) else str(value)
        case "double precision":
            return float(value)
        case "bigint" | "timestamp with time zone":
            return int(value)
        case "boolean":
            if not isinstance(value, bool):
                raise TypeError
            return value
    return value


def _guessed(value: Any) -> Type:
    """The type that a new name in a dynamic object gets by its first value."""
    if isinstance(value, dict):
        return {"type": "object", "policy": "dynamic"}
    if isinstance(value, list):
        return {"type": "array", "of": _guessed(value[0])["type"] if value else "undefined"}
    if isinstance(value, bool):
        return {"type": "boolean"}
    if isinstance(value, int):
        return {"type": "bigint"}
    return {"type": "double precision" if isinstance(value, float) else "text"}


def _check_type(type_: Type) -> None:
    if type_["type"] == "float_vector" and type_["length"] > MAX_DIMENSION:
        raise sql_error(f"Float vector type's length cannot exceed {MAX_DIMENSION}")


def _check_relation(name: tuple[str, str]) -> None:
    for part in name:
        if len(part.encode()) > MAX_NAME or any(c in part for c in ' .#\\/*?"<>|,'):
            raise Refused(
                f"InvalidRelationName[Relation name '{'.'.join(name)}' is invalid.]", 4002
            )
