"""Chunks and documents as Chroma's metadata: one JSON text to read them back, and two ids.

Chroma is not asked with filters: its own read every row (1.7 s at 100,000 of which most match,
where an unfiltered question takes 11 ms), and it cannot say that a property is missing. The keyword
index answers them. With all properties as metadata 286 chunks a second were written, so 480.
"""

import base64
import json
from collections.abc import Mapping

import numpy as np

from stores.records import ChunkRecord, DocumentRecord, StoredChunk, Vector

RECORD, CHUNK_ID, RAW = "record", "chunk_id", "raw"
DOCUMENT_ID = "t:document_id"

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
        DOCUMENT_ID: chunk.document_id,
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
