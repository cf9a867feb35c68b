"""The properties of another program's table for filters: specified columns, and `metadata`."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from callslip.stores.crate.connection import Connection, Sql
from callslip.stores.ledger import Attachment
from callslip.stores.levels import PASSAGE

INTEGERS = frozenset({"byte", "smallint", "integer", "bigint"})
NUMBERS = INTEGERS | {"real", "double precision", "numeric"}
TIMES = frozenset({"timestamp with time zone", "timestamp without time zone"})
TEXTS = frozenset({"text", "character varying", "character"})
FLAGS = frozenset({"boolean"})

ARRAY = "_array"
"""The suffix of the type name of a list."""

SPECIFIED: Mapping[str, str] = {"hierarchy": '"hierarchy"', "ref": '"ref"'}
"""Properties that are columns, in SQL; metadata with the same name hides them."""

OF_A_CHUNK: Mapping[str, str] = {
    "section": '"hierarchy"',
    "title": "CONCAT(\"title_fs\", '')",  # the column alone is compared by its analyzed terms
    "document_id": '"_id"',
}
"""Fields of every chunk, in SQL; metadata with the same name does not hide them."""

CONSTANT: Mapping[str, object] = {
    **{"level": PASSAGE, "ordinal": 0},
    **dict.fromkeys(("parent_id", "filename", "lang"), ""),
}
"""The fields that are the same for each row: a row is a passage without a parent."""


@dataclass(frozen=True)
class Field:
    """The SQL expression of a property's values, and CrateDB's name of their type."""

    sql: str
    type: str

    @property
    def listed(self) -> bool:
        """Whether the values are lists."""
        return self.type.endswith(ARRAY)

    @property
    def member(self) -> str:
        """The type of one value, or of a member of a list."""
        return self.type.removesuffix(ARRAY)


Fields = Mapping[str, Field]


def read_fields(connection: Connection, at: Attachment) -> dict[str, Field]:
    """Every name that filters may use, with its field; nested names are joined by dots."""
    rows = connection.run(
        Sql(
            "SELECT column_details['path'] AS path, data_type FROM information_schema.columns"
            " WHERE table_schema = ? AND table_name = ? AND column_details['name'] = ?",
            (at.table_schema, at.table_name, "metadata"),
        )
    )
    known = {name: Field(sql, "text") for name, sql in SPECIFIED.items()}
    for path, type_ in rows:
        if path:
            inner = "".join("['{}']".format(part.replace("'", "''")) for part in path)
            known[".".join(path)] = Field(f'"metadata"{inner}', type_)
    return known | {name: Field(sql, "text") for name, sql in OF_A_CHUNK.items()}


def shown(metadata: object, fields: Fields, prefix: str = "") -> dict[str, object]:
    """The properties in `metadata`: nested names joined by dots, times as ISO 8601, no nulls."""
    known: dict[str, object] = {}
    for name, value in metadata.items() if isinstance(metadata, dict) else ():
        path = f"{prefix}{name}"
        if isinstance(value, dict):
            known |= shown(value, fields, f"{path}.")
        elif value is not None:
            field = fields.get(path)
            is_time = field is not None and field.member in TIMES
            known[path] = _time(value) if is_time else value
    return known


def _time(value: object) -> object:
    if isinstance(value, list):
        return [_time(member) for member in value]
    if not isinstance(value, int):
        return value
    try:
        return datetime.fromtimestamp(value / 1000, UTC).isoformat().replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):  # a year that Python does not support
        return value
