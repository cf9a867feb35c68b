"""The contract of stores: what every one of them does, in the same words and with the same result.

A store holds what a search needs of each chunk. It does not decide what is live: the ledger does.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from stores.filters import Where
from stores.fusion import Candidate, Fusion, fuse

Vector = npt.NDArray[np.float32]
Scalar = str | float | int | bool
Value = Scalar | list[str] | list[float] | list[bool]
"""A property. A string in ISO 8601 form is a date; a list holds one type."""

Properties = Mapping[str, Value]


@dataclass(frozen=True)
class CollectionSchema:
    """What a store must know before the first chunk arrives. The metric is cosine."""

    name: str
    dimension: int


@dataclass(frozen=True)
class DocumentRecord:
    """A document, as filters on documents see it."""

    document_id: str
    title: str
    filename: str
    properties: Properties = field(default_factory=dict)


@dataclass(frozen=True)
class ChunkRecord:
    """A chunk. `terms` is the analyzed text, separated by spaces; `vector` has length 1."""

    chunk_id: str
    document_id: str
    body: str
    terms: str
    vector: Vector
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
    """A chunk as a store gives it back; the vector only where it was asked for."""

    chunk_id: str
    document_id: str
    body: str
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


FILTERABLE = ("document_id", "section", "filename", "title", "lang", "level", "ordinal")
"""Fields of a chunk that filters see beside its own properties, and that no property may hide."""


@dataclass(frozen=True)
class LegHit:
    """One hit of one leg. Higher scores are better: cosine similarity, or BM25."""

    chunk_id: str
    score: float


@dataclass(frozen=True)
class BatchOutcome:
    """What became of each object of a batch: ids stored, and the reason for each that was not."""

    stored: tuple[str, ...]
    failed: Mapping[str, str] = field(default_factory=dict)


Half = Literal["vector", "keyword"]


class Store(ABC):
    """One client per process, made after the fork.

    Every method raises StoreDown when the store does not answer and CollectionNotFound where the
    collection does not exist. Ties in scores are broken by chunk id, ascending.
    """

    kind: str

    @abstractmethod
    def ping(self) -> None:
        """Raise StoreDown unless the store answers."""

    @abstractmethod
    def ensure_schema(self, schema: CollectionSchema) -> None:
        """Make the collection where it is missing. Idempotent; another dimension is a Conflict."""

    @abstractmethod
    def drop_collection(self, collection: str) -> None:
        """Remove the collection and all it holds. Idempotent."""

    @abstractmethod
    def batch_upsert_documents(
        self, collection: str, documents: Sequence[DocumentRecord]
    ) -> BatchOutcome:
        """Write documents; the same id again replaces."""

    @abstractmethod
    def batch_upsert_chunks(self, collection: str, chunks: Sequence[ChunkRecord]) -> BatchOutcome:
        """Write chunks; the same id again replaces. A bad object fails alone and is named.

        A NaN vector, one of another dimension, an empty id or a property of an unknown type is a
        failed object, never a failed batch (`stores.checks` has the rules).
        """

    @abstractmethod
    def build_where(self, where: Where) -> object:
        """Translate a filter into the store's own language; InvalidFilter where it cannot."""

    @abstractmethod
    def vector_query(
        self, collection: str, vector: Vector, limit: int, where: Where | None = None
    ) -> list[LegHit]:
        """The nearest chunks by cosine similarity, best first."""

    @abstractmethod
    def keyword_query(
        self, collection: str, terms: str, limit: int, where: Where | None = None
    ) -> list[LegHit]:
        """The best chunks by BM25 over analyzed terms, best first; none share no term."""

    def hybrid_query(
        self,
        collection: str,
        vector: Vector | None,
        terms: str,
        limit: int,
        where: Where | None = None,
        *,
        pool: int = 100,
        fusion: Fusion = "weighted",
        alpha: float = 0.4,
        rrf_k: int = 60,
    ) -> list[Candidate]:
        """Both legs, fused by Callslip so that every store ranks alike.

        `alpha` is the weight of the vector leg; at 0 or 1 the other leg is not run.
        """
        vectors: list[LegHit] = []
        keywords: list[LegHit] = []
        if vector is not None and alpha > 0:
            vectors = self.vector_query(collection, vector, pool, where)
        if terms and (alpha < 1 or vector is None):
            keywords = self.keyword_query(collection, terms, pool, where)
        return fuse(
            [(h.chunk_id, h.score) for h in vectors],
            [(h.chunk_id, h.score) for h in keywords],
            fusion=fusion,
            alpha=alpha,
            rrf_k=rrf_k,
        )[:limit]

    @abstractmethod
    def get_chunks(
        self, collection: str, chunk_ids: Sequence[str], *, include_vector: bool = False
    ) -> list[StoredChunk]:
        """The chunks of these ids, in this order; unknown ids are left out."""

    @abstractmethod
    def get_documents(self, collection: str, document_ids: Sequence[str]) -> list[DocumentRecord]:
        """The documents of these ids, in this order; unknown ids are left out."""

    @abstractmethod
    def chunk_ids(self, collection: str, document_id: str) -> dict[Half, set[str]]:
        """The ids that each half of the store holds of a document; for counts and audits."""

    @abstractmethod
    def delete_chunks(self, collection: str, chunk_ids: Iterable[str]) -> None:
        """Remove chunks from every half. Unknown ids are nothing to do."""

    @abstractmethod
    def delete_document(self, collection: str, document_id: str) -> None:
        """Remove a document and all its chunks. Idempotent."""

    @abstractmethod
    def count(self, collection: str, where: Where | None = None) -> int:
        """How many chunks match."""

    @abstractmethod
    def aggregate_group_by(
        self, collection: str, prop: str, where: Where | None = None
    ) -> list[tuple[Scalar, int]]:
        """How many chunks hold each value of a property, most frequent first, then by value.

        A list counts once for each of its values. Dates are given as they were written.
        """

    @abstractmethod
    def close(self) -> None:
        """Give up connections; the store is not used afterwards."""
