"""A store in memory, for tests of what stands above the stores."""

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from callslip.errors import CollectionNotFound
from stores.checks import chunk_fault, document_fault
from stores.contract import (
    BatchOutcome,
    ChunkRecord,
    CollectionSchema,
    DocumentRecord,
    Half,
    LegHit,
    Scalar,
    Store,
    StoredChunk,
    Vector,
)
from stores.filters import Where, matches


class MemoryStore(Store):
    """Everything in dictionaries; keyword scores are the number of terms in common."""

    kind = "memory"

    def __init__(self) -> None:
        self._dimensions: dict[str, int] = {}
        self._chunks: dict[str, dict[str, ChunkRecord]] = {}
        self._documents: dict[str, dict[str, DocumentRecord]] = {}

    def ping(self) -> None:
        """It answers."""

    def ensure_schema(self, schema: CollectionSchema) -> None:
        self._dimensions[schema.name] = schema.dimension
        self._chunks.setdefault(schema.name, {})
        self._documents.setdefault(schema.name, {})

    def drop_collection(self, collection: str) -> None:
        for table in (self._dimensions, self._chunks, self._documents):
            table.pop(collection, None)

    def batch_upsert_documents(
        self, collection: str, documents: Sequence[DocumentRecord]
    ) -> BatchOutcome:
        faults = {d.document_id: document_fault(d) for d in documents}
        good = [d for d in documents if not faults[d.document_id]]
        self._table(collection)
        self._documents[collection] |= {d.document_id: d for d in good}
        return _outcome(faults)

    def batch_upsert_chunks(self, collection: str, chunks: Sequence[ChunkRecord]) -> BatchOutcome:
        table = self._table(collection)
        faults = {c.chunk_id: chunk_fault(c, self._dimensions[collection]) for c in chunks}
        table |= {c.chunk_id: c for c in chunks if not faults[c.chunk_id]}
        return _outcome(faults)

    def build_where(self, where: Where) -> object:
        return where

    def vector_query(
        self, collection: str, vector: Vector, limit: int, where: Where | None = None
    ) -> list[LegHit]:
        found = self._matching(collection, where)
        return _best([LegHit(c.chunk_id, float(c.vector @ vector)) for c in found], limit)

    def keyword_query(
        self, collection: str, terms: str, limit: int, where: Where | None = None
    ) -> list[LegHit]:
        asked = set(terms.split())
        hits = [
            LegHit(c.chunk_id, float(len(asked & set(c.terms.split()))))
            for c in self._matching(collection, where)
        ]
        return _best([hit for hit in hits if hit.score], limit)

    def get_chunks(
        self, collection: str, chunk_ids: Sequence[str], *, include_vector: bool = False
    ) -> list[StoredChunk]:
        table = self._table(collection)
        return [_stored(table[i], include_vector) for i in chunk_ids if i in table]

    def get_documents(self, collection: str, document_ids: Sequence[str]) -> list[DocumentRecord]:
        self._table(collection)
        table = self._documents[collection]
        return [table[i] for i in document_ids if i in table]

    def chunk_ids(self, collection: str, document_id: str) -> dict[Half, set[str]]:
        table = self._table(collection)
        ids = {i for i, chunk in table.items() if chunk.document_id == document_id}
        return {"vector": ids, "keyword": set(ids)}

    def delete_chunks(self, collection: str, chunk_ids: Iterable[str]) -> None:
        table = self._table(collection)
        for chunk_id in chunk_ids:
            table.pop(chunk_id, None)

    def delete_document(self, collection: str, document_id: str) -> None:
        self.delete_chunks(collection, self.chunk_ids(collection, document_id)["vector"])
        self._documents[collection].pop(document_id, None)

    def count(self, collection: str, where: Where | None = None) -> int:
        return len(self._matching(collection, where))

    def aggregate_group_by(
        self, collection: str, prop: str, where: Where | None = None
    ) -> list[tuple[Scalar, int]]:
        counts: Counter[Scalar] = Counter()
        for chunk in self._matching(collection, where):
            value = _seen(chunk).get(prop)
            if value is not None:
                counts.update(value if isinstance(value, list) else [value])
        return sorted(counts.items(), key=lambda found: (-found[1], str(found[0])))

    def close(self) -> None:
        """Nothing is held."""

    def _table(self, collection: str) -> dict[str, ChunkRecord]:
        if collection not in self._chunks:
            raise CollectionNotFound(f"collection {collection!r} does not exist")
        return self._chunks[collection]

    def _matching(self, collection: str, where: Where | None) -> list[ChunkRecord]:
        chunks = self._table(collection).values()
        return [c for c in chunks if where is None or matches(where, _seen(c))]


def _seen(chunk: ChunkRecord) -> dict[str, object]:
    """What filters see."""
    stored = _stored(chunk, include_vector=False)
    return {**stored.__dict__, **chunk.properties}


def _stored(chunk: ChunkRecord, include_vector: bool) -> StoredChunk:
    fields = {k: v for k, v in chunk.__dict__.items() if k not in ("terms", "vector")}
    fields["properties"] = dict(chunk.properties)
    return StoredChunk(**fields, vector=np.array(chunk.vector) if include_vector else None)


def _outcome(faults: dict[str, str | None]) -> BatchOutcome:
    return BatchOutcome(
        tuple(i for i, fault in faults.items() if not fault),
        {i: fault for i, fault in faults.items() if fault},
    )


def _best(hits: list[LegHit], limit: int) -> list[LegHit]:
    return sorted(hits, key=lambda hit: (-hit.score, hit.chunk_id))[:limit]
