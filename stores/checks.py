"""What an object must be to be stored, the same for every store."""

from collections.abc import Iterator, Mapping

import numpy as np

from stores.contract import ChunkRecord, DocumentRecord
from stores.filters import is_unicode, normalize

MAX_TEXT_BYTES = 32_000
"""Of an id, a property's name or a text that filters see: inverted indexes hold a term in 64 KB."""


def chunk_fault(chunk: ChunkRecord, dimension: int) -> str | None:
    """Say why a collection of this dimension cannot store the chunk; None where it can."""
    shape = np.shape(chunk.vector)
    if shape != (dimension,):
        return f"its vector has the shape {shape}, the collection's is ({dimension},)"
    if not np.isfinite(chunk.vector).all():
        return "its vector holds a value that is not a finite number"
    if not np.any(chunk.vector):
        return "its vector has length 0 and so no direction"
    fields = {
        "document_id": chunk.document_id,
        "section": chunk.section,
        "title": chunk.title,
        "filename": chunk.filename,
        "lang": chunk.lang,
    }
    texts = {"body": chunk.body, "terms": chunk.terms, "heading": chunk.heading}
    faults = [
        *_id_faults("chunk_id", chunk.chunk_id),
        *_id_faults("document_id", chunk.document_id),
        *(f"its {name} is not valid Unicode" for name, t in texts.items() if not is_unicode(t)),
        *_property_faults(fields),
        *_property_faults(chunk.properties),
    ]
    return faults[0] if faults else None


def document_fault(document: DocumentRecord) -> str | None:
    """Say why no collection can store the document; None where it can."""
    fields = {"title": document.title, "filename": document.filename}
    faults = [
        *_id_faults("document_id", document.document_id),
        *_property_faults(fields),
        *_property_faults(document.properties),
    ]
    return faults[0] if faults else None


def _id_faults(name: str, value: str) -> Iterator[str]:
    if not value:
        yield f"its {name} is empty"
    else:
        yield from _text_faults(f"its {name}", value)


def _property_faults(properties: Mapping[str, object]) -> Iterator[str]:
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
    """Integers and floats are one type of a list."""
    return float if isinstance(value, int) and not isinstance(value, bool) else type(value)
