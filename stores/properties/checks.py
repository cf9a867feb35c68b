"""The rules for chunks and documents that can be stored, the same for every store."""

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from callslip.stores.properties.filters import is_unicode, normalize
from callslip.stores.records import (
    ChunkRecord,
    CollectionSchema,
    DocumentRecord,
    Vector,
    VectorSpec,
)
from callslip.vocabulary import TIMES

MAX_TEXT_BYTES = 32_000
"""The most bytes of an id, a property's name or a text that filters see.

Inverted indexes store a term in 64 KB.
"""

MAX_VALUES = 2048
"""The most values of all properties of an object.

Chroma writes the values as rows in one statement, which accepts some 5,400 rows. After an object
with more values, Chroma applies no later write to the collection and answers no search in it.
"""

UNIT_TOLERANCE = 1e-3
"""The greatest difference between 1 and the length of a normalized vector."""


def chunk_fault(chunk: ChunkRecord, schema: CollectionSchema) -> str | None:
    """The reason why the collection cannot store the chunk; None if it can."""
    if fault := _vector_fault("its vector", chunk.vector, schema.default):
        return fault
    for name, vector in chunk.named.items():
        if name not in schema.named:
            return f"the collection has no vector {name!r}"
        if fault := _vector_fault(f"its vector {name!r}", vector, schema.named[name]):
            return fault
    fields = {
        **{name: getattr(chunk, name) for name in TIMES},
        "document_id": chunk.document_id,
        "parent_id": chunk.parent_id,
        "section": chunk.section,
        "title": chunk.title,
        "filename": chunk.filename,
        "lang": chunk.lang,
    }
    texts = {n: getattr(chunk, n) for n in ("body", "terms", "heading", "pretty", "anchor")}
    faults = [
        *_id_faults("chunk_id", chunk.chunk_id),
        *_id_faults("document_id", chunk.document_id),
        *(f"its {name} is not valid Unicode" for name, t in texts.items() if not is_unicode(t)),
        *_property_faults(fields),
        *_property_faults(chunk.properties),
    ]
    return faults[0] if faults else None


def document_fault(document: DocumentRecord) -> str | None:
    """The reason why no collection can store the document; None if a collection can."""
    fields = {"title": document.title, "filename": document.filename}
    faults = [
        *_id_faults("document_id", document.document_id),
        *_property_faults(fields),
        *_property_faults(document.properties),
    ]
    return faults[0] if faults else None


def sound_chunks(
    chunks: Iterable[ChunkRecord], schema: CollectionSchema
) -> tuple[list[ChunkRecord], dict[str, str]]:
    """The chunks that can be stored, and the reason against each other chunk, by chunk id.

    Among chunks with the same id, only the last one counts.
    """
    unique = {chunk.chunk_id: chunk for chunk in chunks}
    failed = {id_: fault for id_, c in unique.items() if (fault := chunk_fault(c, schema))}
    return [chunk for id_, chunk in unique.items() if id_ not in failed], failed


def sound_documents(
    documents: Iterable[DocumentRecord],
) -> tuple[list[DocumentRecord], dict[str, str]]:
    """As `sound_chunks`, for documents."""
    unique = {document.document_id: document for document in documents}
    failed = {id_: fault for id_, d in unique.items() if (fault := document_fault(d))}
    return [document for id_, document in unique.items() if id_ not in failed], failed


def _vector_fault(what: str, vector: Vector, spec: VectorSpec) -> str | None:
    shape = np.shape(vector)
    if shape != (spec.dimension,):
        return f"{what} has the shape {shape}, the collection's is ({spec.dimension},)"
    if not np.isfinite(vector).all():
        return f"{what} holds a value that is not a finite number"
    length = float(np.linalg.norm(vector))
    if spec.metric == "cosine" and length == 0:
        return f"{what} has length 0 and so no direction"
    if spec.normalized and abs(length - 1) > UNIT_TOLERANCE:
        return f"{what} has the length {length:.4g}, the collection's have 1"
    return None


def _id_faults(name: str, value: str) -> Iterator[str]:
    if not value:
        yield f"its {name} is empty"
    else:
        yield from _text_faults(f"its {name}", value)


def _property_faults(properties: Mapping[str, object]) -> Iterator[str]:
    values = sum(len(v) or 1 if isinstance(v, list | tuple) else 1 for v in properties.values())
    if values > MAX_VALUES:
        yield f"its properties have {values} values, at most {MAX_VALUES} are allowed"
    for name, value in properties.items():
        if not name.strip():
            yield "a property has no name"
            continue
        yield from _text_faults("the name of a property", name)
        members = value if isinstance(value, list | tuple) else [value]
        if len({_family(member) for member in members}) > 1:
            yield f"the list {name!r} mixes types"
        for member in members:
            try:
                normalize(member)
            except ValueError as error:
                yield f"the property {name!r} {error}"
            else:
                if isinstance(member, str):
                    yield from _text_faults(f"the property {name!r}", member)


def _text_faults(what: str, text: str) -> Iterator[str]:
    if not is_unicode(text):
        yield f"{what} is not valid Unicode"
    elif len(text.encode()) > MAX_TEXT_BYTES:
        yield f"{what} is longer than {MAX_TEXT_BYTES} bytes"


def _family(value: object) -> type:
    """The type of a list's member; integers and floats count as one type."""
    return float if isinstance(value, int) and not isinstance(value, bool) else type(value)
