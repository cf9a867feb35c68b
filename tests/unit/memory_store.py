"""A store in memory, for tests of what stands above the stores."""

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from callslip.errors import CollectionNotFound
from stores.checks import chunk_fault, document_fault
from stores.contract import Store
from stores.filters import Where, matches
from stores.metrics import Metric
from stores.records import (
    BatchOutcome,
    ChunkRecord,
    CollectionSchema,
    DocumentRecord,
    LegHit,
    Scalar,
    StoredChunk,
    Vector,
    visible,
)
from stores.schemas import check_made, check_tenant, tenant_missing
from stores.ties import ranked


class MemoryStore(Store):
    """Everything in dictionaries; keyword scores are the number of terms in common."""

    kind = "memory"
    indexed = frozenset[Metric]()

    def __init__(self) -> None:
        self._schemas: dict[str, CollectionSchema] = {}
        self._chunks: dict[tuple[str, str], dict[str, ChunkRecord]] = {}
        self._documents: dict[tuple[str, str], dict[str, DocumentRecord]] = {}

    def ping(self) -> None:
        """It answers."""

    def ensure_schema(self, schema: CollectionSchema) -> None:
        check_made(self._schemas.setdefault(schema.name, schema), schema)
        if not schema.tenants:
            self._make(schema.name, "")

    def schema(self, collection: str) -> CollectionSchema:
        if collection not in self._schemas:
            raise CollectionNotFound(f"Collection {collection} does not exist.")
        return self._schemas[collection]

    def collections(self) -> list[str]:
        return sorted(self._schemas)

    def drop_collection(self, collection: str) -> None:
        self._schemas.pop(collection, None)
        for table in (self._chunks, self._documents):
            for place in [place for place in table if place[0] == collection]:
                del table[place]

    def ensure_tenant(self, collection: str, tenant: str) -> None:
        check_tenant(self.schema(collection), tenant)
        self._make(collection, tenant)

    def drop_tenant(self, collection: str, tenant: str) -> None:
        check_tenant(self.schema(collection), tenant)
        self._chunks.pop((collection, tenant), None)
        self._documents.pop((collection, tenant), None)

    def tenants(self, collection: str) -> list[str]:
        self.schema(collection)
        return sorted(tenant for at, tenant in self._chunks if at == collection and tenant)

    def batch_upsert_documents(
        self, collection: str, documents: Sequence[DocumentRecord], *, tenant: str = ""
    ) -> BatchOutcome:
        faults = {d.document_id: document_fault(d) for d in documents}
        good = [d for d in documents if not faults[d.document_id]]
        self._documents[self._at(collection, tenant)] |= {d.document_id: d for d in good}
        return _outcome(faults)

    def batch_upsert_chunks(
        self, collection: str, chunks: Sequence[ChunkRecord], *, tenant: str = ""
    ) -> BatchOutcome:
        table, schema = self._table(collection, tenant), self.schema(collection)
        faults = {c.chunk_id: chunk_fault(c, schema) for c in chunks}
        table |= {c.chunk_id: c for c in chunks if not faults[c.chunk_id]}
        return _outcome(faults)

    def build_where(self, where: Where) -> object:
        return where

    def nearest(
        self,
        collection: str,
        vector: Vector,
        limit: int,
        where: Where | None = None,
        *,
        tenant: str = "",
        vector_name: str = "",
    ) -> list[LegHit]:
        raise AssertionError("no metric is indexed")

    def keyword_query(
        self,
        collection: str,
        terms: str,
        limit: int,
        where: Where | None = None,
        *,
        tenant: str = "",
    ) -> list[LegHit]:
        asked = set(terms.split())
        hits = [
            LegHit(c.chunk_id, float(len(asked & set(c.terms.split()))))
            for c in self._matching(collection, where, tenant)
        ]
        return ranked([hit for hit in hits if hit.score])[:limit]

    def get_chunks(
        self,
        collection: str,
        chunk_ids: Sequence[str],
        *,
        tenant: str = "",
        include_vector: bool = False,
        include_terms: bool = False,
    ) -> list[StoredChunk]:
        table = self._table(collection, tenant)
        return [_stored(table[i], include_vector, include_terms) for i in chunk_ids if i in table]

    def terms(
        self, collection: str, chunk_ids: Sequence[str], *, tenant: str = ""
    ) -> dict[str, str]:
        table = self._table(collection, tenant)
        return {i: table[i].terms for i in chunk_ids if i in table}

    def get_documents(
        self, collection: str, document_ids: Sequence[str], *, tenant: str = ""
    ) -> list[DocumentRecord]:
        table = self._documents[self._at(collection, tenant)]
        return [table[i] for i in document_ids if i in table]

    def find_ids(
        self, collection: str, where: Where | None = None, *, tenant: str = ""
    ) -> list[str]:
        return sorted(c.chunk_id for c in self._matching(collection, where, tenant))

    def chunk_ids(
        self, collection: str, document_id: str | None = None, *, tenant: str = ""
    ) -> dict[str, set[str]]:
        table = self._table(collection, tenant)
        ids = {i for i, chunk in table.items() if document_id in (None, chunk.document_id)}
        return {"vector": ids, "keyword": set(ids)}

    def document_ids(self, collection: str, *, tenant: str = "") -> set[str]:
        at = self._at(collection, tenant)
        return set(self._documents[at]) | {c.document_id for c in self._chunks[at].values()}

    def delete_chunks(self, collection: str, chunk_ids: Iterable[str], *, tenant: str = "") -> None:
        table = self._table(collection, tenant)
        for chunk_id in chunk_ids:
            table.pop(chunk_id, None)

    def delete_document(self, collection: str, document_id: str, *, tenant: str = "") -> None:
        ids = self.chunk_ids(collection, document_id, tenant=tenant)["vector"]
        self.delete_chunks(collection, ids, tenant=tenant)
        self._documents[collection, tenant].pop(document_id, None)

    def count(self, collection: str, where: Where | None = None, *, tenant: str = "") -> int:
        return len(self._matching(collection, where, tenant))

    def aggregate_group_by(
        self, collection: str, prop: str, where: Where | None = None, *, tenant: str = ""
    ) -> list[tuple[Scalar, int]]:
        counts: Counter[Scalar] = Counter()
        for chunk in self._matching(collection, where, tenant):
            value = visible(chunk).get(prop)
            if value is not None:
                counts.update(value if isinstance(value, list) else [value])
        return sorted(counts.items(), key=lambda found: (-found[1], str(found[0])))

    def close(self) -> None:
        """Nothing is held."""

    def _make(self, collection: str, tenant: str) -> None:
        self._chunks.setdefault((collection, tenant), {})
        self._documents.setdefault((collection, tenant), {})

    def _at(self, collection: str, tenant: str) -> tuple[str, str]:
        check_tenant(self.schema(collection), tenant)
        if (collection, tenant) not in self._chunks:
            raise tenant_missing(collection, tenant)
        return collection, tenant

    def _table(self, collection: str, tenant: str) -> dict[str, ChunkRecord]:
        return self._chunks[self._at(collection, tenant)]

    def _matching(self, collection: str, where: Where | None, tenant: str) -> list[ChunkRecord]:
        chunks = self._table(collection, tenant).values()
        return [c for c in chunks if where is None or matches(where, visible(c))]


def _stored(chunk: ChunkRecord, include_vector: bool, include_terms: bool) -> StoredChunk:
    fields = {k: v for k, v in chunk.__dict__.items() if k not in ("terms", "vector", "named")}
    fields["properties"] = dict(chunk.properties)
    return StoredChunk(
        **fields,
        vector=np.array(chunk.vector) if include_vector else None,
        named=dict(chunk.named) if include_vector else {},
        terms=chunk.terms if include_terms else None,
    )


def _outcome(faults: dict[str, str | None]) -> BatchOutcome:
    return BatchOutcome(
        tuple(i for i, fault in faults.items() if not fault),
        {i: fault for i, fault in faults.items() if fault},
    )
