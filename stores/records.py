"""The records that are written to stores and read from them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from callslip.errors import VectorNotFound
from callslip.stores.metrics import Metric
from callslip.vocabulary import FILTERABLE as FILTERABLE
from callslip.vocabulary import TIMES as TIMES
from callslip.vocabulary import VALIDITY as VALIDITY
from callslip.vocabulary import Scalar as Scalar
from callslip.vocabulary import Value as Value

Vector = npt.NDArray[np.float32]

AUDIENCE = "callslip:audience"
"""A property of the chunks of a document that not everyone may read: the audience in the ledger.

Searches for a reader leave audiences out by it. No client can set it, filter by it or see it.
"""

RESERVED = (*FILTERABLE, AUDIENCE)
"""Names that no property of a document may have."""

Properties = Mapping[str, Value]

TABLE_HEADER = "table_header"
"""A property of a passage that begins inside a table: the table's header rows, which are in no span
of the passage.
"""


@dataclass(frozen=True)
class VectorSpec:
    """The dimension and metric of the vectors of one name.

    If `normalized`, each vector has length 1 and any other vector is refused. `embedder` is the
    model that makes a named vector of every chunk; empty: clients provide the vector, for some
    chunks or all. The model of the default vector is in the ledger's record of the collection.
    """

    dimension: int
    metric: Metric = "cosine"
    normalized: bool = False
    embedder: str = ""


@dataclass(frozen=True)
class CollectionSchema:
    """The definition of a collection, which a store needs and stores before the first chunk.

    Every chunk has the default vector and may have one vector under each name in `named`. In a
    collection with tenants, every chunk and document belongs to a tenant.
    """

    name: str
    default: VectorSpec
    named: Mapping[str, VectorSpec] = field(default_factory=dict)
    tenants: bool = False

    @property
    def embedders(self) -> dict[str, str]:
        """The models by the names of the vectors that every chunk has beside the default one."""
        return {name: spec.embedder for name, spec in self.named.items() if spec.embedder}

    def vector(self, vector_name: str = "") -> VectorSpec:
        """The specification of the default vector, or of a named one. Raises VectorNotFound."""
        if not vector_name:
            return self.default
        try:
            return self.named[vector_name]
        except KeyError:
            known = ", ".join(sorted(self.named)) or "none"
            raise VectorNotFound(
                f"Collection {self.name} has no vector {vector_name!r}; named ones: {known}."
            ) from None


@dataclass(frozen=True)
class DocumentRecord:
    """A document with the properties that filters on documents use."""

    document_id: str
    title: str
    filename: str
    properties: Properties = field(default_factory=dict)


@dataclass(frozen=True)
class ChunkRecord:
    """A chunk to be written. `terms` is the analyzed text, separated by spaces.

    `parent_id` is the id of the chunk that contains this one; `level` counts from 0 at the top.
    `start` and `end` are offsets in characters of the document's text. `created_at` is the time of
    the document's first submission, `updated_at` that of the version since which the chunk is as it
    is, both in ISO 8601. `pretty` is the text in Markdown if it differs from the body, and `anchor`
    the id of its heading within the page; each of these four is empty if it is not known.
    """

    chunk_id: str
    document_id: str
    body: str
    terms: str
    vector: Vector
    named: Mapping[str, Vector] = field(default_factory=dict)
    parent_id: str = ""
    section: str = ""
    heading: str = ""
    title: str = ""
    filename: str = ""
    lang: str = ""
    level: int = 0
    ordinal: int = 0
    start: int = 0
    end: int = 0
    properties: Properties = field(default_factory=dict)
    created_at: str = ""
    updated_at: str = ""
    pretty: str = ""
    anchor: str = ""


@dataclass(frozen=True)
class StoredChunk:
    """A chunk as read from a store; vectors and terms are None unless they were requested."""

    chunk_id: str
    document_id: str
    body: str
    parent_id: str
    section: str
    heading: str
    title: str
    filename: str
    lang: str
    level: int
    ordinal: int
    start: int
    end: int
    properties: dict[str, Value]
    vector: Vector | None = None
    named: Mapping[str, Vector] = field(default_factory=dict)
    terms: str | None = None
    created_at: str = ""
    updated_at: str = ""
    pretty: str = ""
    anchor: str = ""


LATER_FIELDS = (*TIMES, "pretty", "anchor")
"""The fields that chunks of an earlier release lack; a store keeps those that are not empty."""


def later_fields(chunk: ChunkRecord) -> dict[str, str]:
    """The values of LATER_FIELDS that are not empty."""
    return {name: value for name in LATER_FIELDS if (value := getattr(chunk, name))}


ENRICHED_PROPERTIES = ("entities", *VALIDITY)
"""Properties that enrichment may add to any chunk, besides the facets of rules. Every collection
knows them.
"""


def moment(seconds: float) -> str:
    """A time in seconds since 1970, in ISO 8601 with microseconds."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")


def dated(chunks: Iterable[ChunkRecord], created_at: float, updated_at: float) -> list[ChunkRecord]:
    """The chunks with these times, in seconds since 1970, where they have none."""
    created, updated = moment(created_at), moment(updated_at)
    return [
        chunk if chunk.created_at else replace(chunk, created_at=created, updated_at=updated)
        for chunk in chunks
    ]


def table_header(properties: Mapping[str, object]) -> str:
    """The header rows of the table that a passage continues, with a line end; else empty."""
    rows = properties.get(TABLE_HEADER)
    return f"{rows}\n" if rows and isinstance(rows, str) else ""


def public(properties: Mapping[str, Value]) -> dict[str, Value]:
    """The properties that clients see."""
    return {name: value for name, value in properties.items() if name != AUDIENCE}


def for_audience(
    audience: str, document: DocumentRecord, chunks: Sequence[ChunkRecord]
) -> tuple[DocumentRecord, list[ChunkRecord]]:
    """The document and its chunks with the property of their audience; without it for everyone."""
    own = {AUDIENCE: audience} if audience else {}
    return (
        replace(document, properties={**public(document.properties), **own}),
        [replace(c, properties={**public(c.properties), **own}) for c in chunks],
    )


def visible(chunk: ChunkRecord | StoredChunk) -> dict[str, object]:
    """The properties that filters see.

    A field of the chunk takes precedence over a property, and a property over one of TIMES.
    """
    times = {name: value for name in TIMES if (value := getattr(chunk, name))}
    return {**times, **chunk.properties, **{name: getattr(chunk, name) for name in FILTERABLE}}


def visible_in(record: Mapping[str, Any]) -> dict[str, Any]:
    """As `visible`, for a chunk that a store represents as a dictionary of its fields."""
    fields = {name: record[name] for name in FILTERABLE if name in record}
    times = {name: record[name] for name in TIMES if name in record}
    return {**times, **record["properties"], **fields}


def under(names: Collection[str], seen: Mapping[str, Any]) -> dict[str, Value]:
    """The properties with one of these names that have a value."""
    return {name: seen[name] for name in names if seen.get(name) not in (None, "")}


class RetrieverHit(NamedTuple):
    """One hit of one retriever. Higher scores are better.

    The score of the vector retriever is the cosine similarity, or the negative distance for another
    metric; that of the keyword retriever is the one that the store's `keyword_score` names.
    """

    chunk_id: str
    score: float


@dataclass(frozen=True)
class BatchOutcome:
    """The result of a batch: the ids that were stored, and the reason of each failure."""

    stored: tuple[str, ...]
    failed: Mapping[str, str] = field(default_factory=dict)
