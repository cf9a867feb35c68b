"""What filters see of a table of somebody else: specified columns, and what is in `metadata`."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from stores.crate.connection import Connection, Sql
from stores.ledger import Attachment
from stores.levels import PASSAGE

INTEGERS = frozenset({"byte", "smallint", "integer", "bigint"})
NUMBERS = INTEGERS | {"real", "double precision", "numeric"}
TIMES = frozenset({"timestamp with time zone", "timestamp without time zone"})
TEXTS = frozenset({"text", "character varying", "character"})
FLAGS = frozenset({"boolean"})

ARRAY = "_array"
"""Ends the name of the type of a list."""

SPECIFIED: Mapping[str, str] = {"hierarchy": '"hierarchy"', "ref": '"ref"'}
"""Properties that are columns, in SQL; metadata of the same name hides them."""

OF_A_CHUNK: Mapping[str, str] = {
    "section": '"hierarchy"',
    "title": "CONCAT(\"title_fs\", '')",  # by itself it is compared as its analyzer cut it
    "document_id": '"_id"',
}
"""Fields of every chunk, which nothing hides, in SQL."""

CONSTANT: Mapping[str, object] = {
    **{"level": PASSAGE, "ordinal": 0},
    **dict.fromkeys(("parent_id", "filename", "lang"), ""),
}
"""What is the same for each row: it is a passage that stands alone."""


@dataclass(frozen=True)
class Field:
    """Where the values of a name are, in SQL, and CrateDB's name of their type."""

    sql: str
    type: str

    @property
    def listed(self) -> bool:
        """Whether a value is a list."""
        return self.type.endswith(ARRAY)

    @property
    def member(self) -> str:
        """The type of one value."""
        return self.type.removesuffix(ARRAY)


Fields = Mapping[str, Field]


def read_fields(connection: Connection, at: Attachment) -> dict[str, Field]:
    """Every name that filters may use; nested ones are joined by dots."""
    rows = connection.run(
        Sql(
            "SELECT column_details['path'] AS path, data_type FROM information_schema.columns"
            " WHERE table_schema = ? AND table_name = ? AND column_details['name'] = ?",
            (at.table_schema, at.table_name, "metadata"),
        )
    )
    found = {name: Field(sql, "text") for name, sql in SPECIFIED.items()}
    for path, type_ in rows:
        if path:
            inner = "".join("['{}']".format(part.replace("'", "''")) for part in path)
            found[".".join(path)] = Field(f'"metadata"{inner}', type_)
    return found | {name: Field(sql, "text") for name, sql in OF_A_CHUNK.items()}


def shown(metadata: object, fields: Fields, prefix: str = "") -> dict[str, object]:
    """The properties of a hit: nested names joined by dots, times as ISO 8601, nulls left out."""
    found: dict[str, object] = {}
    for name, value in metadata.items() if isinstance(metadata, dict) else ():
        path = f"{prefix}{name}"
        if isinstance(value, dict):
            found |= shown(value, fields, f"{path}.")
        elif value is not None:
            field = fields.get(path)
            is_time = field is not None and field.member in TIMES
            found[path] = _time(value) if is_time else value
    return found


def _time(value: object) -> object:
    if isinstance(value, list):
        return [_time(member) for member in value]
    if not isinstance(value, int):
        return value
    try:
        return datetime.fromtimestamp(value / 1000, UTC).isoformat().replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):  # a year that Python has not
        return value
