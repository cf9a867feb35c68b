"""Chunks and documents as Chroma's metadata: atoms for filters, one JSON text to read them back."""

import json
from collections.abc import Mapping

from stores.atoms import atoms
from stores.chroma.where import key
from stores.contract import FILTERABLE, ChunkRecord, DocumentRecord, StoredChunk, Vector

RECORD, CHUNK_ID = "record", "chunk_id"
"""Keys of ours; those of atoms have a colon."""

Metadata = dict[str, object]

_FIELDS = (
    *("document_id", "section", "heading", "title", "filename", "lang"),
    *("level", "ordinal", "start", "end"),
)


def visible(chunk: ChunkRecord) -> dict[str, object]:
    """The properties that filters see: the chunk's own, and its fields over them."""
    return {**chunk.properties, **{name: getattr(chunk, name) for name in FILTERABLE}}


def chunk_metadata(chunk: ChunkRecord) -> Metadata:
    """Everything of a chunk but its body and vector."""
    record = {name: getattr(chunk, name) for name in _FIELDS}
    return {
        RECORD: _dump({**record, "properties": dict(chunk.properties)}),
        CHUNK_ID: chunk.chunk_id,
        **_atoms(visible(chunk)),
    }


def stored_chunk(
    chunk_id: str, body: str, metadata: Mapping[str, object], vector: Vector | None
) -> StoredChunk:
    """Read a chunk back."""
    record = json.loads(str(metadata[RECORD]))
    return StoredChunk(chunk_id=chunk_id, body=body, vector=vector, **record)


def document_metadata(document: DocumentRecord) -> Metadata:
    """Everything of a document."""
    record = {"title": document.title, "filename": document.filename}
    return {RECORD: _dump({**record, "properties": dict(document.properties)})}


def stored_document(document_id: str, metadata: Mapping[str, object]) -> DocumentRecord:
    """Read a document back."""
    return DocumentRecord(document_id=document_id, **json.loads(str(metadata[RECORD])))


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
