"""Chunks and documents as Chroma's metadata: atoms for filters, one JSON text to read them back."""

import base64
import json
from collections.abc import Mapping

import numpy as np

from stores.atoms import atoms
from stores.chroma.where import key
from stores.records import ChunkRecord, DocumentRecord, StoredChunk, Vector, visible

RECORD, CHUNK_ID, RAW = "record", "chunk_id", "raw"
"""Keys of ours; those of atoms have a colon."""

Metadata = dict[str, object]

_FIELDS = (
    *("document_id", "parent_id", "section", "heading", "title", "filename", "lang"),
    *("level", "ordinal", "start", "end"),
)


def chunk_metadata(chunk: ChunkRecord, raw: Mapping[str, Vector]) -> Metadata:
    """Everything of a chunk but its body and vectors; `raw` are those that Chroma would rescale."""
    record = {name: getattr(chunk, name) for name in _FIELDS}
    kept = {RAW: {name: _text(vector) for name, vector in raw.items()}} if raw else {}
    return {
        RECORD: _dump({**record, "properties": dict(chunk.properties), **kept}),
        CHUNK_ID: chunk.chunk_id,
        **_atoms(visible(chunk)),
    }


def stored_chunk(
    chunk_id: str,
    body: str,
    metadata: Mapping[str, object],
    *,
    vectors: Mapping[str, Vector],
    terms: str | None,
) -> StoredChunk:
    """Read a chunk back; `vectors` by name, the default one's is empty."""
    record = json.loads(str(metadata[RECORD]))
    raw = record.pop(RAW, {})
    given = {name: _vector(raw[name]) if name in raw else v for name, v in vectors.items()}
    vector = given.pop("", None)
    return StoredChunk(
        chunk_id=chunk_id, body=body, vector=vector, named=given, terms=terms, **record
    )


def document_metadata(document: DocumentRecord) -> Metadata:
    """Everything of a document."""
    record = {"title": document.title, "filename": document.filename}
    return {RECORD: _dump({**record, "properties": dict(document.properties)})}


def stored_document(document_id: str, metadata: Mapping[str, object]) -> DocumentRecord:
    """Read a document back."""
    return DocumentRecord(document_id=document_id, **json.loads(str(metadata[RECORD])))


def _text(vector: Vector) -> str:
    return base64.b64encode(np.asarray(vector, "<f4").tobytes()).decode()


def _vector(text: str) -> Vector:
    return np.frombuffer(base64.b64decode(text), "<f4").astype(np.float32)


def _dump(record: Mapping[str, object]) -> str:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"))


def _atoms(properties: Mapping[str, object]) -> Metadata:
    single: Metadata = {}
    lists: dict[str, list[object]] = {}
    for item in atoms(properties):
        if item.mark.isupper():
            lists.setdefault(key(item), []).append(item.value)
        else:
            single[key(item)] = item.value
    return {**single, **lists}
