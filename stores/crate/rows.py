"""Chunks and documents as rows of CrateDB, and back."""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import timedelta

import numpy as np

from callslip.stores.crate.columns import Columns
from callslip.stores.crate.tables import COLUMNS, vector_column
from callslip.stores.properties.filters import instant
from callslip.stores.properties.terms import EPOCH
from callslip.stores.records import (
    ChunkRecord,
    CollectionSchema,
    DocumentRecord,
    StoredChunk,
    Vector,
    later_fields,
    visible,
)

MAX_HIERARCHY = 32_000
"""The most bytes of a hierarchy. Lucene accepts at most 32,766 bytes for one term."""

MAX_TERM = 255
"""The most UTF-16 characters of a term; the `whitespace` analyzer cuts longer ones into several."""

_NUMBER_BYTES = 18
"""The approximate bytes of a vector's number in a request: once as JSON, once in base64."""

_FIELDS = (
    *("document_id", "parent_id", "section", "heading", "title", "filename", "lang"),
    *("level", "ordinal", "start", "end"),
)


def chunk_columns(schema: CollectionSchema) -> list[str]:
    """The columns that `chunk_row` fills, in its order."""
    return [*COLUMNS, *(vector_column(schema, name) for name in sorted(schema.named))]


def chunk_row(
    chunk: ChunkRecord, schema: CollectionSchema, tenant: str, columns: Columns
) -> list[object]:
    """A chunk as a row."""
    return [
        _hierarchy(chunk),
        chunk.title,
        chunk.body,
        chunk.pretty or None,
        chunk.anchor or None,
        indexed(chunk.vector, schema),
        columns.metadata(visible(chunk)),
        chunk.chunk_id,
        chunk.document_id,
        tenant or None,
        chunk.parent_id,
        chunk.level,
        chunk.ordinal,
        chunk.start,
        chunk.end,
        _milliseconds(chunk.properties.get("valid_from")),
        _milliseconds(chunk.properties.get("valid_to")),
        words(chunk.terms.split()),
        _dump({name: _text(v) for name, v in {"": chunk.vector, **chunk.named}.items()}),
        _record(chunk),
        *(
            indexed(chunk.named[name], schema, name) if name in chunk.named else None
            for name in sorted(schema.named)
        ),
    ]


def chunk_bytes(chunk: ChunkRecord) -> int:
    """The approximate size of a chunk in a request, in bytes."""
    texts = 2 * len(chunk.terms.encode()) + len(chunk.body.encode()) + len(chunk.pretty.encode())
    numbers = len(chunk.vector) + sum(len(vector) for vector in chunk.named.values())
    return texts + _NUMBER_BYTES * numbers


def stored_chunk(
    chunk_id: str,
    body: str,
    pretty: str | None,
    record: str,
    *,
    vectors: str | None,
    terms: str | None,
) -> StoredChunk:
    """Read a chunk back; `vectors` and `terms` are None unless they were requested.

    An earlier release wrote the body of each chunk as `pretty`.
    """
    fields = json.loads(record)
    written = fields.pop("terms", terms)
    named = {name: _vector(text) for name, text in json.loads(vectors or "{}").items()}
    return StoredChunk(
        chunk_id=chunk_id,
        body=body,
        pretty="" if pretty is None or pretty == body else pretty,
        vector=named.pop("", None),
        named=named,
        terms=None if terms is None else written,
        **fields,
    )


def document_row(table: str, document: DocumentRecord) -> list[object]:
    """A document as a row of `id`, `table_name`, `document_id`, `record`."""
    record = {"title": document.title, "filename": document.filename}
    return [
        document_key(table, document.document_id),
        table,
        document.document_id,
        _dump({**record, "properties": dict(document.properties)}),
    ]


def document_key(table: str, document_id: str) -> str:
    """The primary key of a document. A key of two columns would be too long for a long id."""
    return f"{table}/{document_id}"


def stored_document(document_id: str, record: str) -> DocumentRecord:
    """Read a document back."""
    return DocumentRecord(document_id=document_id, **json.loads(record))


def indexed(vector: Vector, schema: CollectionSchema, vector_name: str = "") -> Vector:
    """The vector that the index compares: CrateDB supports only the Euclidean distance d.

    Under the cosine metric, the vector is scaled to length 1: then the cosine is 1 - d²/2.
    """
    narrow = np.ascontiguousarray(vector, np.float32)
    if schema.vector(vector_name).metric != "cosine":
        return narrow
    wide = narrow.astype(np.float64)
    return (wide / np.linalg.norm(wide)).astype(np.float32)


def words(terms: Sequence[str]) -> str:
    """Join terms by spaces; a term that the analyzer would cut is replaced by its hash."""
    return " ".join(_word(term) for term in terms)


def _word(term: str) -> str:
    if len(term.encode("utf-16-le", errors="replace")) <= 2 * MAX_TERM:
        return term
    return f"sha256:{hashlib.sha256(term.encode(errors='replace')).hexdigest()}"


def _record(chunk: ChunkRecord) -> str:
    record = {name: getattr(chunk, name) for name in _FIELDS} | later_fields(chunk)
    record.pop("pretty", None)  # in its own column
    changed = words(chunk.terms.split()) != chunk.terms
    terms = {"terms": chunk.terms} if changed else {}
    return _dump({**record, "properties": dict(chunk.properties), **terms})


def _hierarchy(chunk: ChunkRecord) -> str:
    parts = [chunk.filename or chunk.document_id, chunk.section]
    path = "/".join(part for part in parts if part)
    return path.encode()[:MAX_HIERARCHY].decode(errors="ignore")


def _milliseconds(value: object) -> int | None:
    """A date as CrateDB's TIMESTAMP; None for anything else."""
    moment = instant(value) if isinstance(value, str) else None
    return None if moment is None else (moment - EPOCH) // timedelta(milliseconds=1)


def _text(vector: Vector) -> str:
    return base64.b64encode(np.asarray(vector, "<f4").tobytes()).decode()


def _vector(text: str) -> Vector:
    return np.frombuffer(base64.b64decode(text), "<f4").astype(np.float32)


def _dump(record: Mapping[str, object]) -> str:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"))
