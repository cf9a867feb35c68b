"""The rows of one collection or tenant in SQLite: chunks, documents and properties.

Each written chunk gets the next key and has it until the chunk is replaced or deleted; no key is
used twice. So rows never change, and the keys show which chunks were added or removed since a
snapshot.
"""

import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from callslip.stores.properties.terms import NUMBER, PropertyTerm, property_terms
from callslip.stores.records import (
    ChunkRecord,
    DocumentRecord,
    Scalar,
    StoredChunk,
    Vector,
    later_fields,
    visible,
)

TABLES = """
CREATE TABLE state (
    changes INTEGER NOT NULL,   -- of any kind, so that a reader knows whether it is up to date
    next_key INTEGER NOT NULL,
    rows INTEGER NOT NULL,
    moved INTEGER NOT NULL,     -- chunks that came or went since the last fit
    snapshot TEXT               -- its folder
);
INSERT INTO state VALUES (0, 1, 0, 0, NULL);
CREATE TABLE documents (document_id TEXT PRIMARY KEY, record TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE chunks (
    key INTEGER PRIMARY KEY, chunk_id TEXT NOT NULL UNIQUE, document_id TEXT NOT NULL,
    record TEXT NOT NULL, body TEXT NOT NULL, terms TEXT NOT NULL
);
CREATE INDEX chunks_of_document ON chunks (document_id);
CREATE TABLE vectors (
    chunk INTEGER NOT NULL, name TEXT NOT NULL, vector BLOB NOT NULL, PRIMARY KEY (chunk, name)
);
CREATE TABLE atoms (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL, mark TEXT NOT NULL, value NOT NULL,
    UNIQUE (name, mark, value)
);
CREATE TABLE held (
    atom INTEGER NOT NULL, chunk INTEGER NOT NULL, PRIMARY KEY (atom, chunk)
) WITHOUT ROWID;
CREATE INDEX held_by_chunk ON held (chunk);
CREATE TABLE gone (number INTEGER PRIMARY KEY AUTOINCREMENT, chunk INTEGER NOT NULL);
"""

_FIELDS = (
    *("parent_id", "section", "heading", "title", "filename", "lang"),
    *("level", "ordinal", "start", "end"),
)

Keys = npt.NDArray[np.int64]


@dataclass(frozen=True)
class State:
    """The one row of the table `state`."""

    changes: int
    next_key: int
    rows: int
    moved: int
    snapshot: str | None


def state(connection: sqlite3.Connection) -> State:
    """Read the row of the table `state`."""
    rows = connection.execute("SELECT changes, next_key, rows, moved, snapshot FROM state")
    return State(*rows.fetchone())


def put_chunks(connection: sqlite3.Connection, chunks: Sequence[ChunkRecord]) -> None:
    """Write chunks with different ids. A chunk with an existing id replaces the stored one."""
    old = keys_of(connection, (chunk.chunk_id for chunk in chunks))
    remove_keys(connection, list(old.values()))
    first = state(connection).next_key
    keyed = list(enumerate(chunks, first))
    connection.executemany(
        "INSERT INTO chunks VALUES (?, ?, ?, ?, ?, ?)",
        ((k, c.chunk_id, c.document_id, _record(c), c.body, c.terms) for k, c in keyed),
    )
    connection.executemany(
        "INSERT INTO vectors VALUES (?, ?, ?)",
        (
            (k, name, np.asarray(vector, "<f4").tobytes())
            for k, c in keyed
            for name, vector in {"": c.vector, **c.named}.items()
        ),
    )
    _put_property_terms(
        connection,
        [(k, _plain(term)) for k, c in keyed for term in property_terms(visible(c))],
    )
    connection.execute(
        "UPDATE state SET changes = changes + 1, next_key = next_key + :n, rows = rows + :n,"
        " moved = moved + :n",
        {"n": len(keyed)},
    )


def put_documents(connection: sqlite3.Connection, documents: Iterable[DocumentRecord]) -> None:
    """Write documents. A document with an existing id replaces the stored one."""
    connection.executemany(
        "INSERT OR REPLACE INTO documents VALUES (?, ?)",
        (
            (
                d.document_id,
                _dump({"title": d.title, "filename": d.filename, "properties": dict(d.properties)}),
            )
            for d in documents
        ),
    )


def remove_keys(connection: sqlite3.Connection, keys: Sequence[int]) -> None:
    """Remove chunks, and record their keys in `gone` for the readers of a snapshot."""
    if not keys:
        return
    among = "IN (SELECT value FROM json_each(?))"
    listed = (json.dumps(keys),)
    connection.execute(f"DELETE FROM chunks WHERE key {among}", listed)  # noqa: S608
    connection.execute(f"DELETE FROM vectors WHERE chunk {among}", listed)  # noqa: S608
    connection.execute(f"DELETE FROM held WHERE chunk {among}", listed)  # noqa: S608
    if state(connection).snapshot is not None:
        connection.executemany("INSERT INTO gone (chunk) VALUES (?)", ((key,) for key in keys))
    connection.execute(
        "UPDATE state SET changes = changes + 1, rows = rows - :n, moved = moved + :n",
        {"n": len(keys)},
    )


def remove_document(connection: sqlite3.Connection, document_id: str) -> None:
    """Remove a document and all its chunks."""
    rows = connection.execute("SELECT key FROM chunks WHERE document_id = ?", (document_id,))
    remove_keys(connection, [key for (key,) in rows])
    connection.execute("DELETE FROM documents WHERE document_id = ?", (document_id,))


def keys_of(connection: sqlite3.Connection, chunk_ids: Iterable[str]) -> dict[str, int]:
    """The keys of these chunks, by chunk id. Ignores unknown ids."""
    keys = {}
    for chunk_id in chunk_ids:
        row = connection.execute("SELECT key FROM chunks WHERE chunk_id = ?", (chunk_id,))
        for (key,) in row:
            keys[chunk_id] = key
    return keys


def ids_of(connection: sqlite3.Connection, keys: Keys) -> list[str]:
    """The chunk ids of these keys, in this order."""
    rows = connection.execute(
        "SELECT chunk_id FROM json_each(?) AS listed JOIN chunks ON chunks.key = listed.value"
        " ORDER BY listed.key",
        (json.dumps(keys.tolist()),),
    )
    return [chunk_id for (chunk_id,) in rows]


def all_ids(connection: sqlite3.Connection) -> list[str]:
    """The ids of all chunks, sorted."""
    return sorted(chunk_id for (chunk_id,) in connection.execute("SELECT chunk_id FROM chunks"))


def with_vector(connection: sqlite3.Connection, document_id: str | None, name: str) -> set[str]:
    """The ids of a document's chunks, or of all chunks, that have a vector of this name."""
    has_one = "EXISTS (SELECT 1 FROM vectors WHERE chunk = chunks.key AND name = ?)"
    return _ids(connection, document_id, has_one, name)


def with_terms(connection: sqlite3.Connection, document_id: str | None) -> set[str]:
    """The ids of a document's chunks, or of all chunks, that have property terms."""
    return _ids(connection, document_id, "EXISTS (SELECT 1 FROM held WHERE chunk = chunks.key)")


def _ids(
    connection: sqlite3.Connection, document_id: str | None, condition: str, *values: str
) -> set[str]:
    sql = f"SELECT chunk_id FROM chunks WHERE {condition}"  # noqa: S608 - the callers' own
    if document_id is not None:  # not `? IS NULL OR …`, so that the index of documents is used
        sql, values = f"{sql} AND document_id = ?", (*values, document_id)
    return {chunk_id for (chunk_id,) in connection.execute(sql, values)}


def all_keys(connection: sqlite3.Connection) -> Keys:
    """The keys of all chunks, ascending."""
    return np.sort(integers(connection, "SELECT group_concat(key) FROM chunks", ()))


def integers(connection: sqlite3.Connection, sql: str, values: Sequence[object]) -> Keys:
    """The result of a statement that joins integers with commas: three times as fast as rows."""
    return _integers(connection.execute(sql, values).fetchone()[0])


def chunks_of(
    connection: sqlite3.Connection,
    chunk_ids: Iterable[str],
    *,
    include_vector: bool,
    include_terms: bool,
) -> Iterator[StoredChunk]:
    """The chunks with these ids, in this order. Ignores unknown ids."""
    for chunk_id in chunk_ids:
        row = connection.execute(
            "SELECT key, document_id, record, body, terms FROM chunks WHERE chunk_id = ?",
            (chunk_id,),
        ).fetchone()
        if row is None:
            continue
        key, document_id, record, body, terms = row
        vectors = dict(vectors_of(connection, key)) if include_vector else {}
        yield StoredChunk(
            chunk_id=chunk_id,
            document_id=document_id,
            body=body,
            vector=vectors.pop("", None),
            named=vectors,
            terms=terms if include_terms else None,
            **json.loads(record),
        )


def terms_of(connection: sqlite3.Connection, chunk_ids: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The ids and terms of these chunks. Ignores unknown ids."""
    for chunk_id in chunk_ids:
        yield from connection.execute(
            "SELECT chunk_id, terms FROM chunks WHERE chunk_id = ?", (chunk_id,)
        )


def records_of(
    connection: sqlite3.Connection, chunk_ids: Iterable[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The ids and records (fields without body and terms) of these chunks. Ignores unknown ids."""
    for chunk_id in chunk_ids:
        rows = connection.execute(
            "SELECT document_id, record FROM chunks WHERE chunk_id = ?", (chunk_id,)
        )
        for document_id, record in rows:
            ids = {"chunk_id": chunk_id, "document_id": document_id}
            yield chunk_id, ids | json.loads(record)


def vectors_of(connection: sqlite3.Connection, key: int) -> Iterator[tuple[str, Vector]]:
    """The vectors of a chunk with their names; the name of the default vector is empty."""
    rows = connection.execute("SELECT name, vector FROM vectors WHERE chunk = ?", (key,))
    for name, blob in rows:
        yield name, np.frombuffer(blob, "<f4").astype(np.float32)


def documents_of(
    connection: sqlite3.Connection, document_ids: Iterable[str]
) -> Iterator[DocumentRecord]:
    """The documents with these ids, in this order. Ignores unknown ids."""
    for document_id in document_ids:
        rows = connection.execute(
            "SELECT record FROM documents WHERE document_id = ?", (document_id,)
        )
        for (record,) in rows:
            yield DocumentRecord(document_id=document_id, **json.loads(record))


def groups(
    connection: sqlite3.Connection, prop: str, among: Keys | None
) -> list[tuple[Scalar, int]]:
    """Count the chunks for each value of a property, most frequent first; `among` limits them."""
    values, by, _ = _pairs(connection, prop, among)
    counts: Counter[tuple[str, Scalar]] = Counter()
    for id_, count in zip(*np.unique(by, return_counts=True), strict=True):
        counts[values[int(id_)]] += int(count)  # the value alone and the value in a list
    ranked = sorted(counts.items(), key=lambda group: (-group[1], group[0]))
    return [(_scalar(mark, value), count) for (mark, value), count in ranked]


def documents_by_value(
    connection: sqlite3.Connection, prop: str, among: Keys | None
) -> list[tuple[Scalar, int]]:
    """Count the documents that have a chunk with each value; `among` limits the chunks."""
    values, by, chunks = _pairs(connection, prop, among)
    ranks = connection.execute(
        "SELECT group_concat(key), group_concat(rank) FROM"
        " (SELECT key, dense_rank() OVER (ORDER BY document_id) AS rank FROM chunks ORDER BY key)"
    )
    keys, rank = (_integers(joined) for joined in ranks.fetchone())
    documents: dict[tuple[str, Scalar], set[int]] = defaultdict(set)
    order = np.argsort(keys)
    of_chunk = rank[order[np.searchsorted(keys[order], chunks)]] if len(keys) else chunks
    for id_, document in np.unique(np.stack([by, of_chunk]), axis=1).T.tolist():
        documents[values[id_]].add(document)
    return [(_scalar(mark, value), len(ids)) for (mark, value), ids in documents.items()]


def _pairs(
    connection: sqlite3.Connection, prop: str, among: Keys | None
) -> tuple[dict[int, tuple[str, Scalar]], Keys, Keys]:
    """The values of a property by their ids, and pairs of these ids and of chunks that have them.

    The mark of a value in a list is that of the value alone.
    """
    rows = connection.execute(
        "SELECT id, lower(mark), value FROM atoms"
        " WHERE name = ? AND mark IN ('t', 'T', 'n', 'N', 'b', 'B')",
        (prop,),
    )
    values = {id_: (mark, value) for id_, mark, value in rows}
    stored = connection.execute(
        "SELECT group_concat(atom), group_concat(chunk) FROM held"
        " WHERE atom IN (SELECT value FROM json_each(?))",
        (json.dumps(list(values)),),
    )
    by, chunks = (_integers(joined) for joined in stored.fetchone())
    passing = slice(None) if among is None else np.isin(chunks, among)
    return values, by[passing], chunks[passing]


def _integers(joined: str | None) -> Keys:
    return np.fromstring(joined or "", np.int64, sep=",")


def _put_property_terms(
    connection: sqlite3.Connection, stored: Sequence[tuple[int, tuple[str, str, Scalar]]]
) -> None:
    ids = {}
    for term in dict.fromkeys(term for _, term in stored):
        connection.execute("INSERT OR IGNORE INTO atoms (name, mark, value) VALUES (?, ?, ?)", term)
        (ids[term],) = connection.execute(
            "SELECT id FROM atoms WHERE name = ? AND mark = ? AND value = ?", term
        ).fetchone()
    connection.executemany(
        "INSERT OR IGNORE INTO held VALUES (?, ?)",
        ((ids[term], key) for key, term in stored),
    )


def _plain(item: PropertyTerm) -> tuple[str, str, Scalar]:
    return item.name, item.mark, int(item.value) if isinstance(item.value, bool) else item.value


def _scalar(mark: str, value: Scalar) -> Scalar:
    if mark == NUMBER:
        return int(value) if float(value).is_integer() else value
    return value if isinstance(value, str) else bool(value)


def _record(chunk: ChunkRecord) -> str:
    record = {name: getattr(chunk, name) for name in _FIELDS} | later_fields(chunk)
    return _dump({**record, "properties": dict(chunk.properties)})


def _dump(record: Mapping[str, object]) -> str:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"))
