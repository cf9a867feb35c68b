"""What goes into a store and comes out of it."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from callslip.errors import VectorNotFound
from stores.metrics import Metric

Vector = npt.NDArray[np.float32]
Scalar = str | float | int | bool
Value = Scalar | list[str] | list[float] | list[bool]
"""A property. A string in ISO 8601 form is a date; a list holds one type."""

Properties = Mapping[str, Value]

TABLE_HEADER = "table_header"
"""Property of a passage that begins inside a table: its header rows, which no span of it holds."""


@dataclass(frozen=True)
class VectorSpec:
    """What the vectors of one name are. `normalized`: each has length 1, another one is refused."""

    dimension: int
    metric: Metric = "cosine"
    normalized: bool = False


@dataclass(frozen=True)
class CollectionSchema:
    """What a store must know before the first chunk arrives, and keeps.

    Every chunk has the default vector and may have one under each name in `named`. A collection
    with tenants holds nothing outside of them.
    """

    name: str
    default: VectorSpec
    named: Mapping[str, VectorSpec] = field(default_factory=dict)
    tenants: bool = False

    def vector(self, vector_name: str = "") -> VectorSpec:
        """The default vector's specification, or a named one's; VectorNotFound."""
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
    """A document, as filters on documents see it."""

    document_id: str
    title: str
    filename: str
    properties: Properties = field(default_factory=dict)


@dataclass(frozen=True)
class ChunkRecord:
    """A chunk. `terms` is the analyzed text, separated by spaces.

    `parent_id` is the chunk id of the chunk that holds this one; `level` counts from 0 at the top.
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


@dataclass(frozen=True)
class StoredChunk:
    """A chunk as a store gives it back; vectors and terms only where they were asked for."""

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


FILTERABLE = (
    *("document_id", "parent_id", "section", "filename", "title", "lang"),
    *("level", "ordinal"),
)
"""Fields of a chunk that filters see beside its own properties, and that no property may hide."""

FOUND = ("entities", "valid_from", "valid_to")
"""Properties that enrichment may give any chunk, beside the facets of rules: never unknown."""


def visible(chunk: ChunkRecord | StoredChunk) -> dict[str, object]:
    """The properties that filters see: the chunk's own, and its fields over them."""
    return {**chunk.properties, **{name: getattr(chunk, name) for name in FILTERABLE}}


def visible_in(record: Mapping[str, Any]) -> dict[str, Any]:
    """As `visible`, of a chunk that a store kept as a dictionary of its fields."""
    fields = {name: record[name] for name in FILTERABLE if name in record}
    return {**record["properties"], **fields}


def under(names: Collection[str], seen: Mapping[str, Any]) -> dict[str, Value]:
    """Those of the properties that filters see which have one of these names and a value."""
    return {name: seen[name] for name in names if seen.get(name) not in (None, "")}


class LegHit(NamedTuple):
    """One hit of one leg. Higher scores are better.

    Of the vector leg the cosine similarity, or the negative distance of another metric; of the
    keyword leg BM25, or what the store has in its place.
    """

    chunk_id: str
    score: float


@dataclass(frozen=True)
class BatchOutcome:
    """What became of each object of a batch: ids stored, and the reason for each that was not."""

    stored: tuple[str, ...]
    failed: Mapping[str, str] = field(default_factory=dict)
