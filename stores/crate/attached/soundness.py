"""Is a table one of CrateDB's hybrid search specification? What it is that it must not be."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from callslip.errors import InvalidRequest, TableNotFound
from stores.crate.connection import Connection, RelationMissing, Sql
from stores.crate.tables import MAX_DIMENSION
from stores.ledger import Attachment
from stores.metrics import Metric

SPECIFIED: Mapping[str, str] = {
    **dict.fromkeys(("hierarchy", "title_fs", "content_fs", "content_pretty", "ref"), "text"),
    "xs": "float_vector",
    "metadata": "object",
}
"""The columns of the specification and CrateDB's names of their types."""

SEARCHED = ("title_fs", "content_fs")
"""Columns that need a full-text index: without one MATCH compares them as a whole."""

SAMPLE = 100
"""Vectors that are read to see whether their lengths are 1."""


@dataclass(frozen=True)
class Sound:
    """What is known of a table that follows the specification.

    `unit`: a sample of its vectors has length 1, so that their distances are cosines; None where
    it has no row yet.
    """

    dimension: int
    unit: bool | None

    @property
    def metric(self) -> Metric:
        """What the vectors are compared by."""
        return "cosine" if self.unit else "l2-squared"


def inspect(connection: Connection, at: Attachment) -> Sound:
    """Look a table over.

    TableNotFound where it does not exist or may not be read; InvalidRequest that names everything
    that is not as specified.
    """
    kind = _kind(connection, at)
    if kind != "BASE TABLE":
        raise InvalidRequest(
            f"{_named(at)} is a {kind.lower()}, which has no full-text index",
            hint="Name the table that it reads from.",
        )
    columns = _columns(connection, at)
    problems = _problems(columns)
    texts = [c for c in SEARCHED if columns.get(c, ("", None))[0] == "text"]
    problems += _without_index(connection, at, texts) if texts else []
    if problems:
        raise InvalidRequest(
            f"{_named(at)} does not follow the specification: {'; '.join(problems)}",
            hint="docs/cratedb-hybrid-search.md has the statement that makes such a table.",
        )
    rows = connection.run(Sql(f'SELECT "xs" FROM {at.table} LIMIT {SAMPLE}'))
    lengths = [float(np.linalg.norm(xs)) for (xs,) in rows if xs is not None]
    unit = bool(np.allclose(lengths, 1, atol=1e-3)) if lengths else None
    return Sound(columns["xs"][1] or 0, unit)


def _kind(connection: Connection, at: Attachment) -> str:
    rows = connection.run(
        Sql(
            "SELECT table_type FROM information_schema.tables"
            " WHERE table_schema = ? AND table_name = ?",
            (at.table_schema, at.table_name),
        )
    )
    if not rows:
        raise missing(at)
    return str(rows[0][0])


def missing(at: Attachment) -> TableNotFound:
    """The error for a table that is not there."""
    return TableNotFound(f"{_named(at)} does not exist in CrateDB, or may not be read")


def _columns(connection: Connection, at: Attachment) -> dict[str, tuple[str, int | None]]:
    """Type and length of each column."""
    rows = connection.run(
        Sql(
            "SELECT column_name, data_type, character_maximum_length"
            " FROM information_schema.columns WHERE table_schema = ? AND table_name = ?",
            (at.table_schema, at.table_name),
        )
    )
    return {name: (type_, length) for name, type_, length in rows}


def _problems(columns: Mapping[str, tuple[str, int | None]]) -> list[str]:
    found = []
    for name, wanted in SPECIFIED.items():
        if name not in columns:
            found.append(f"column {name} ({_spelled(wanted)}) is missing")
            continue
        type_, length = columns[name]
        if type_ != wanted:
            found.append(f"column {name} is {_spelled(type_)}, not {_spelled(wanted)}")
        elif wanted == "float_vector" and not 1 <= (length or 0) <= MAX_DIMENSION:
            found.append(f"column {name} has {length} dimensions, not 1 to {MAX_DIMENSION}")
    return found


def _without_index(connection: Connection, at: Attachment, columns: Sequence[str]) -> list[str]:
    try:
        ((made,),) = connection.run(Sql(f"SHOW CREATE TABLE {at.table}"))
    except RelationMissing:
        raise missing(at) from None
    return [
        f"column {name} has no full-text index (INDEX USING FULLTEXT)"
        for name in columns
        if not re.search(rf'^\s*"?{name}"? TEXT\b[^,]*?INDEX USING FULLTEXT', made, re.MULTILINE)
    ]


def _spelled(type_: str) -> str:
    return type_.upper()


def _named(at: Attachment) -> str:
    return f"Table {at.table_schema}.{at.table_name}"
