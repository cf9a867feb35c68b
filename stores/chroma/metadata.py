"""Chunks and documents as Chroma metadata: a JSON text, read back, and two ids.

The keyword index applies the filters, not Chroma: a filter in Chroma reads every row (1.7 s at
100,000 rows of which most match; an unfiltered query takes 11 ms), and Chroma has no filter for a
missing property. With all properties as metadata, 286 chunks were written per second; with one JSON
text, 480.
"""

import base64
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from callslip.stores.records import (
    ChunkRecord,
    DocumentRecord,
    StoredChunk,
    Vector,
    later_fields,
)

RECORD, CHUNK_ID, RAW = "record", "chunk_id", "raw"
DOCUMENT_ID = "t:document_id"

Metadata = dict[str, object]

_FIELDS = (
    *("document_id", "parent_id", "section", "heading", "title", "filename", "lang"),
    *("level", "ordinal", "start", "end"),
)


def chunk_metadata(chunk: ChunkRecord, raw: Mapping[str, Vector]) -> Metadata:
    """The metadata of a chunk: its fields and properties, without body, terms and vectors.

    `raw` has the vectors that Chroma would rescale, by name: the metadata stores their values.
    """
    record = {name: getattr(chunk, name) for name in _FIELDS} | later_fields(chunk)
    rescaled = {RAW: {name: _text(vector) for name, vector in raw.items()}} if raw else {}
    return {
        RECORD: _dump({**record, "properties": dict(chunk.properties), **rescaled}),
        CHUNK_ID: chunk.chunk_id,
        DOCUMENT_ID: chunk.document_id,
    }


def chunk_copy(chunk: ChunkRecord) -> str:
    """The fields, properties and body of a chunk as JSON."""
    record = {name: getattr(chunk, name) for name in _FIELDS} | later_fields(chunk)
    return _dump({**record, "body": chunk.body, "properties": dict(chunk.properties)})


def copied_chunk(chunk_id: str, copy: str) -> StoredChunk:
    """Read a chunk back from its copy, without vectors and terms."""
    return StoredChunk(chunk_id=chunk_id, **json.loads(copy))


def stored_chunk(
    chunk_id: str,
    body: str,
    metadata: Mapping[str, object],
    *,
    vectors: Mapping[str, Vector],
    terms: str | None,
) -> StoredChunk:
    """Read a chunk back. `vectors` are by name; the name of the default vector is empty."""
    record = _record(metadata)
    raw = record.pop(RAW, {})
    named = {name: _vector(raw[name]) if name in raw else v for name, v in vectors.items()}
    vector = named.pop("", None)
    return StoredChunk(
        chunk_id=chunk_id, body=body, vector=vector, named=named, terms=terms, **record
    )


def document_metadata(document: DocumentRecord) -> Metadata:
    """The metadata of a document: its title, filename and properties."""
    record = {"title": document.title, "filename": document.filename}
    return {RECORD: _dump({**record, "properties": dict(document.properties)})}


def stored_document(document_id: str, metadata: Mapping[str, object]) -> DocumentRecord:
    """Read a document back."""
    return DocumentRecord(document_id=document_id, **_record(metadata))


def _record(metadata: Mapping[str, object]) -> dict[str, Any]:
    """The fields of a chunk or document."""
    read: dict[str, Any] = json.loads(str(metadata[RECORD]))
    return read


def _text(vector: Vector) -> str:
    return base64.b64encode(np.asarray(vector, "<f4").tobytes()).decode()


def _vector(text: str) -> Vector:
    return np.frombuffer(base64.b64decode(text), "<f4").astype(np.float32)


def _dump(record: Mapping[str, object]) -> str:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"))
