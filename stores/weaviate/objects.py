"""Chunks and documents as Weaviate's objects."""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import numpy as np
from weaviate.classes.data import DataObject

from callslip.stores.properties.filters import instant
from callslip.stores.records import (
    TIMES,
    ChunkRecord,
    DocumentRecord,
    Properties,
    StoredChunk,
    Vector,
    later_fields,
)
from callslip.stores.weaviate.classes import (
    BODY,
    CHUNK_DATES,
    DOCUMENT_DATES,
    DOCUMENT_TEXTS,
    ENTITIES,
    PARENT_ID,
    RECORD,
    TERMS,
    VECTORS,
)
from callslip.stores.weaviate.names import uuid_of, vector_of

_FIELDS = (
    *("chunk_id", "document_id", "parent_id", "section", "heading", "title", "filename", "lang"),
    *("level", "ordinal", "start", "end"),
)

_DATES = (datetime(1678, 1, 1, tzinfo=UTC), datetime(2262, 1, 1, tzinfo=UTC))
"""The range of indexed dates: Weaviate uses 64 bits of nanoseconds and overflows silently."""


def chunk_object(
    chunk: ChunkRecord, property_terms: Mapping[str, object], references: Mapping[str, UUID]
) -> DataObject[Any, Any]:
    """A chunk as an object: `property_terms` for filters, and the record to read it back."""
    vectors = {"": chunk.vector, **chunk.named}
    record = {name: getattr(chunk, name) for name in _FIELDS} | later_fields(chunk)
    times = {name: value for name in TIMES if (value := record.get(name))}
    properties: dict[str, object] = {
        "chunk_id": chunk.chunk_id,
        "doc_id": chunk.document_id,
        "section": chunk.section,
        PARENT_ID: chunk.parent_id,
        BODY: chunk.body,
        TERMS: " ".join(chunk.terms.split()),
        VECTORS: [vector_of(name) for name in vectors],
        RECORD: _dump({**record, "properties": dict(chunk.properties)}),
        **_specified({**times, **chunk.properties}, texts=(), dates=CHUNK_DATES),
        **property_terms,
    }
    return DataObject(
        uuid=uuid_of(chunk.chunk_id),
        properties=properties,
        references=dict(references),
        vector={vector_of(name): np.asarray(v, np.float32).tolist() for name, v in vectors.items()},
    )


def stored_chunk(
    properties: Mapping[str, Any], vectors: Mapping[str, Any], named: Iterable[str]
) -> StoredChunk:
    """Read a chunk back, with the vectors and terms that `vectors` and `properties` contain.

    `named` are the names of the collection's named vectors.
    """
    named_vectors = {
        name: _vector(vectors[at]) for name in named if (at := vector_of(name)) in vectors
    }
    default = vectors.get(vector_of(""))
    return StoredChunk(
        body=properties[BODY],
        vector=None if default is None else _vector(default),
        named=named_vectors,
        terms=properties.get(TERMS),
        **json.loads(properties[RECORD]),
    )


def document_object(document: DocumentRecord) -> DataObject[Any, Any]:
    """A document as an object without a vector."""
    record = {name: getattr(document, name) for name in ("document_id", "title", "filename")}
    properties = document.properties
    return DataObject(
        uuid=uuid_of(document.document_id),
        properties={
            "doc_id": document.document_id,
            "title": document.title,
            RECORD: _dump({**record, "properties": dict(properties)}),
            **_specified(properties, texts=DOCUMENT_TEXTS, dates=DOCUMENT_DATES),
        },
    )


def stored_document(properties: Mapping[str, Any]) -> DocumentRecord:
    """Read a document back."""
    return DocumentRecord(**json.loads(properties[RECORD]))


def _specified(
    properties: Properties, *, texts: Iterable[str], dates: Iterable[str]
) -> dict[str, object]:
    """The properties for which the classes have a typed property, if the values have its type."""
    record: dict[str, object] = {
        name: value for name in texts if isinstance(value := properties.get(name), str)
    }
    for name in dates:
        value = properties.get(name)
        moment = instant(value) if isinstance(value, str) else None
        if moment and _DATES[0] <= moment < _DATES[1]:
            record[name] = moment
    entities = properties.get(ENTITIES)
    if isinstance(entities, list) and entities and isinstance(entities[0], str):
        record[ENTITIES] = entities
    return record


def _vector(numbers: object) -> Vector:
    return np.asarray(numbers, np.float32)


def _dump(record: Mapping[str, object]) -> str:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"))
