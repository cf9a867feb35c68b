"""Reads chunks, documents, ids, counts and groups from the tables of one scope."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from callslip.stores.crate import queries
from callslip.stores.crate.catalog import Scope
from callslip.stores.crate.connection import Connection, Sql
from callslip.stores.crate.rows import document_key, stored_chunk, stored_document
from callslip.stores.properties.terms import FLAG, NUMBER, TEXT
from callslip.stores.records import DocumentRecord, Scalar, StoredChunk

IDS_PER_CALL = 1000


def chunks(
    connection: Connection,
    at: Scope,
    chunk_ids: Iterable[str],
    *,
    include_vector: bool,
    include_terms: bool,
) -> dict[str, StoredChunk]:
    """The chunks of these ids, by id; unknown ids are left out."""
    vectors = '"vectors"' if include_vector else "NULL"
    terms = '"terms"' if include_terms else "NULL"
    columns = f'"chunk_id", "content_fs", "content_pretty", "record", {vectors}, {terms}'
    return {
        id_: stored_chunk(id_, body, pretty, record, vectors=stored, terms=written)
        for id_, body, pretty, record, stored, written in _rows(connection, at, columns, chunk_ids)
    }


def column(
    connection: Connection, at: Scope, name: str, chunk_ids: Iterable[str]
) -> dict[str, str]:
    """One column of these chunks, by id; unknown ids are left out."""
    return dict(_rows(connection, at, f'"chunk_id", "{name}"', chunk_ids))


def documents(
    connection: Connection, at: Scope, table: str, document_ids: Iterable[str]
) -> dict[str, DocumentRecord]:
    """The documents of these ids, by id, from the table of documents; unknown ids are left out."""
    records_by_id: dict[str, DocumentRecord] = {}
    for some in batches(list(dict.fromkeys(document_ids))):
        keys = [document_key(at.name, id_) for id_ in some]
        select = f'SELECT "document_id", "record" FROM {table} WHERE "id" = ANY(?)'
        rows = _run(connection, select, keys)
        records_by_id |= {id_: stored_document(id_, record) for id_, record in rows}
    return records_by_id


def ids(connection: Connection, at: Scope, condition: Sql | None) -> list[str]:
    """The ids of the chunks that match, in undefined order."""
    clause, args = _where(condition)
    return [id_ for (id_,) in _run(connection, f'SELECT "chunk_id" FROM {at.table}{clause}', *args)]


def document_ids(connection: Connection, at: Scope, table: str) -> set[str]:
    """The ids of all documents that have a chunk, or a record in the table of documents."""
    select = f'SELECT "document_id" FROM {table} WHERE "table_name" = ?'
    records = _run(connection, select, at.name)
    of_chunks = _run(connection, f'SELECT "document_id" FROM {at.table} GROUP BY "document_id"')
    return {id_ for (id_,) in [*of_chunks, *records]}


def count(connection: Connection, at: Scope, condition: Sql | None) -> int:
    """The number of chunks that match."""
    clause, args = _where(condition)
    ((number,),) = _run(connection, f"SELECT COUNT(*) FROM {at.table}{clause}", *args)
    return int(number)


def groups(
    connection: Connection, at: Scope, prop: str, condition: Sql | None
) -> Counter[tuple[str, Scalar]]:
    """The number of matching chunks for each value of a property, by type and value."""
    columns = at.columns.having({(TEXT, prop), (NUMBER, prop), (FLAG, prop)})
    counts: Counter[tuple[str, Scalar]] = Counter()
    for kind in (TEXT, NUMBER, FLAG):
        for path in filter(None, (columns.find(m, prop) for m in (kind, kind.upper()))):
            for value, number in _values(connection, at, path, condition):
                counts[kind, value] += number
    return counts


def batches(ids: Sequence[str]) -> list[Sequence[str]]:
    """Cut ids into batches for one statement each."""
    return [ids[start : start + IDS_PER_CALL] for start in range(0, len(ids), IDS_PER_CALL)]


def _rows(
    connection: Connection, at: Scope, columns: str, chunk_ids: Iterable[str]
) -> list[list[Any]]:
    """Columns of these chunks. Queries the table even without ids, because it may be missing."""
    select = f'SELECT {columns} FROM {at.table} WHERE "chunk_id" = ANY(?)'
    some = batches(list(dict.fromkeys(chunk_ids))) or [[]]
    return [row for batch in some for row in _run(connection, select, batch)]


def _values(
    connection: Connection, at: Scope, path: str, condition: Sql | None
) -> Iterable[tuple[Scalar, int]]:
    """The values in a column with their counts. Members of lists are counted here, not in SQL."""
    clause, args = _where(queries.both([Sql(f"{path} IS NOT NULL"), condition]))
    if path.split("'")[1] in ("text", "number", "flag"):
        select = f"SELECT {path}, COUNT(*) FROM {at.table}{clause} GROUP BY {path}"
        return [(_value(value), number) for value, number in _run(connection, select, *args)]
    rows = _run(connection, f"SELECT {path} FROM {at.table}{clause}", *args)
    lists = (value if isinstance(value, list) else [value] for (value,) in rows)
    return Counter(_value(member) for members in lists for member in members).items()


def _run(connection: Connection, text: str, *args: object) -> list[list[Any]]:
    return connection.run(Sql(text, args))


def _where(condition: Sql | None) -> tuple[str, tuple[object, ...]]:
    return (f" WHERE {condition.text}", condition.args) if condition else ("", ())


def _value(value: object) -> Scalar:
    """A value in the result of `groups`: a whole number becomes an integer."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str | float | int):
        return value
    raise TypeError(type(value))
