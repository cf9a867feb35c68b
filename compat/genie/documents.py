"""Documents with their chunks, in the format of the invokers' requests and responses.

A document's metadata are properties of its chunks under their own names, a nested value under
`outer.inner`. Properties of a single chunk have the prefix `custom_properties.`, so that a response
can separate them from the document's metadata.
"""

from collections.abc import Container, Iterable, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, Field
from pydantic.types import StringConstraints

from callslip.errors import InvalidFilter
from callslip.retrieval.messages import Hit, Text
from callslip.stores.metrics import Metric, distance
from callslip.stores.properties.filters import OPERATORS
from callslip.stores.records import FILTERABLE, TABLE_HEADER

OF_DOCUMENT, OF_CHUNK = "document_metadata.", "custom_properties."

PUBLISHED_OF_CHUNK = "custom_property."
"""The prefix of a chunk's property in a filter, in the published package's documentation."""

CHUNKS_OWN = ("entities", TABLE_HEADER)
"""Properties that ingestion sets for a single passage, without the prefix `OF_CHUNK`."""

LEVEL_FIELD = "hierarchy_level"

MOST_LEVELS, LONGEST_ID, LARGEST = 1000, 64, 2**31 - 1

_Id = Annotated[Text, StringConstraints(min_length=1, max_length=LONGEST_ID)]
_Offset = Annotated[int, Field(ge=0, le=LARGEST)]


class DocumentChunk(BaseModel):
    """A chunk; `distance` is the query's distance, null for a parent of a matching chunk.

    `embeddings` are all its vectors by name, in a collection with named vectors only; the default
    vector is `embedding` or has the name `default`.
    """

    chunk_id: _Id
    content: Text
    original_span: tuple[_Offset, _Offset]
    hierarchy_level: int = Field(ge=0, le=MOST_LEVELS)
    custom_properties: dict[str, Any] | None = None
    parent_id: Text | None = None
    embedding: list[float] | None = None
    embeddings: dict[Text, list[float]] | None = Field(None, exclude_if=lambda value: value is None)
    distance: float | None = None


class ChunkedDocument(BaseModel):
    """One file's metadata and chunks."""

    filename: Text
    document_metadata: dict[str, Any] | None = None
    chunks: list[DocumentChunk]


def documents_of(hits: Iterable[Hit], metric: Metric) -> list[ChunkedDocument]:
    """Group the hits by file name; documents and their chunks keep the order of the hits."""
    documents: dict[str, ChunkedDocument] = {}
    for hit in hits:
        of_document, of_chunk = _parted(hit.properties)
        if hit.source_url:
            of_document.setdefault("source_url", hit.source_url)
        document = documents.setdefault(
            hit.filename,
            ChunkedDocument(filename=hit.filename, document_metadata=of_document, chunks=[]),
        )
        vector_hit = hit.legs.vector if hit.parent_of is None else None
        document.chunks.append(
            DocumentChunk(
                chunk_id=hit.chunk_id,
                content=hit.text,
                original_span=(hit.span.start, hit.span.end),
                hierarchy_level=hit.level,
                custom_properties=of_chunk,
                parent_id=hit.parent_id,
                embedding=hit.vector,
                embeddings=hit.vectors,
                distance=None
                if vector_hit is None
                else round(distance(metric, vector_hit.score), 6),
            )
        )
    return list(documents.values())


def flat(nested: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested values by dotted paths, without null values."""
    values: dict[str, Any] = {}
    for name, value in nested.items():
        if isinstance(value, Mapping):
            values |= flat(value, f"{prefix}{name}.")
        elif value is not None:
            values[prefix + name] = value
    return values


def properties_of(document: ChunkedDocument, chunk: DocumentChunk) -> dict[str, Any]:
    """Return the properties of a provided chunk: its document's metadata and its own properties."""
    of_document = {
        OF_DOCUMENT + name if name in FILTERABLE else name: value
        for name, value in flat(document.document_metadata or {}).items()
    }
    return of_document | flat(chunk.custom_properties or {}, OF_CHUNK)


def filter_name(name: str, known: Container[str]) -> str:
    """Return the stored name of the property that a filter names.

    The filter may omit a prefix or use `PUBLISHED_OF_CHUNK`. An unknown name is returned unchanged.
    """
    if name == LEVEL_FIELD:
        return "level"
    own = name.removeprefix(OF_CHUNK).removeprefix(PUBLISHED_OF_CHUNK)
    tried = [OF_DOCUMENT + name, name, OF_CHUNK + own, name.removeprefix(OF_DOCUMENT)]
    if own in CHUNKS_OWN:
        tried.append(own)
    return next((each for each in tried if each in known), name)


def filter_names(group: Any, known: Container[str]) -> Any:
    """Return a filter's group with the stored names of the properties.

    A value that is not an object is returned unchanged. Raises InvalidFilter if two names stand for
    one property.
    """
    if not isinstance(group, Mapping):
        return group
    named: dict[str, Any] = {}
    for key, value in group.items():
        name = _key(key, known)
        if name in named:
            raise InvalidFilter(f"{key!r} stands in the filter twice, by two names.")
        named[name] = value
    return named


def _key(key: str, known: Container[str]) -> str:
    prop, space, token = key.rstrip().rpartition(" ")
    if space and token in OPERATORS:
        return f"{filter_name(prop.strip(), known)} {token}"
    return filter_name(key.strip(), known)


def _parted(properties: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    of_document: dict[str, Any] = {}
    of_chunk: dict[str, Any] = {}
    for name, value in properties.items():
        if name.startswith(OF_CHUNK):
            _put(of_chunk, name.removeprefix(OF_CHUNK).split("."), value)
        elif name in CHUNKS_OWN:
            of_chunk[name] = value
        else:
            _put(of_document, name.removeprefix(OF_DOCUMENT).split("."), value)
    return of_document, of_chunk


def _put(nested: dict[str, Any], path: list[str], value: Any) -> None:
    """Put a value at its path, or under the dotted name if another value blocks the path."""
    inner: Any = nested
    for name in path[:-1]:
        inner = inner.setdefault(name, {})
        if not isinstance(inner, dict):
            nested[".".join(path)] = value
            return
    inner[path[-1]] = value
