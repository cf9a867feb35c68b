"""Checks whether a table follows CrateDB's hybrid search specification, and names the faults."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from callslip.errors import InvalidRequest, TableNotFound
from callslip.stores.crate.connection import Connection, RelationMissing, Sql
from callslip.stores.crate.tables import MAX_DIMENSION
from callslip.stores.ledger import Attachment
from callslip.stores.metrics import Metric

SPECIFIED: Mapping[str, str] = {
    **dict.fromkeys(("hierarchy", "title_fs", "content_fs", "content_pretty", "ref"), "text"),
    "xs": "float_vector",
    "metadata": "object",
}
"""The columns of the specification and CrateDB's names of their types."""

SEARCHED = ("title_fs", "content_fs")
"""Columns that need a full-text index: without one, MATCH compares the whole text."""

SAMPLE = 100
"""The number of vectors that are read to check whether their lengths are 1."""


@dataclass(frozen=True)
class Sound:
    """The vectors of a table that follows the specification.

    `unit`: whether all vectors of a sample have length 1, so that their distances are cosines;
    None if the sample has no vector.
    """

    dimension: int
    unit: bool | None

    @property
    def metric(self) -> Metric:
        """The metric of the vectors."""
        return "cosine" if self.unit else "l2-squared"


def inspect(connection: Connection, at: Attachment) -> Sound:
    """Check a table.

    Raises TableNotFound if the table does not exist or may not be read, and InvalidRequest, which
    names every deviation from the specification.
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
    """The error for a table that does not exist or may not be read."""
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
    problems = []
    for name, wanted in SPECIFIED.items():
        if name not in columns:
            problems.append(f"column {name} ({_spelled(wanted)}) is missing")
            continue
        type_, length = columns[name]
        if type_ != wanted:
            problems.append(f"column {name} is {_spelled(type_)}, not {_spelled(wanted)}")
        elif wanted == "float_vector" and not 1 <= (length or 0) <= MAX_DIMENSION:
            problems.append(f"column {name} has {length} dimensions, not 1 to {MAX_DIMENSION}")
    return problems


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
