"""The Chroma store: vectors and texts on a Chroma server, keywords in a Tantivy index beside it.

The two halves are written one after the other. Both writes are idempotent, so that a crash between
them is repaired by repeating the step; `chunk_ids` shows what each half holds.
"""

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tantivy

from callslip.errors import InvalidRequest
from stores.atoms import TEXT, Atom
from stores.checks import chunk_fault, document_fault
from stores.chroma.connection import Connection
from stores.chroma.metadata import (
    CHUNK_ID,
    chunk_metadata,
    document_metadata,
    stored_chunk,
    stored_document,
    visible,
)
from stores.chroma.names import chunks_of, documents_of, slug
from stores.chroma.table import IDS_PER_CALL, Row, Table, batches
from stores.chroma.where import ChromaWhere, key, translate
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
from stores.filters import Where
from stores.keyword_filter import filter_query
from stores.keyword_index import SCHEMA, Entry, KeywordIndex
from stores.ties import best, ranked

_NO_VECTOR = np.ones(1, np.float32)
"""Of documents: Chroma stores nothing without one."""


@dataclass(frozen=True)
class BothHalves:
    """A filter in each half's language; `vector` is None where only the keyword half can say it."""

    vector: ChromaWhere | None
    keyword: tantivy.Query


@dataclass(frozen=True)
class _Parts:
    """Where a collection lies."""

    chunks: Table
    documents: Table
    keywords: KeywordIndex


class ChromaStore(Store):
    """A collection is two Chroma collections, chunks and documents, and a folder in `index_dir`.

    Nothing is connected before the first call.
    """

    kind = "chroma"

    def __init__(self, url: str, index_dir: Path) -> None:
        self._connection = Connection(url)
        self._index_dir = index_dir
        self._parts: dict[str, _Parts] = {}
        self._lock = threading.Lock()

    def ping(self) -> None:
        self._connection.ping()

    def close(self) -> None:
        self._connection.close()

    def ensure_schema(self, schema: CollectionSchema) -> None:
        if schema.dimension < 1:
            raise InvalidRequest("A collection's dimension is at least 1.")
        at = self._of(schema.name)
        at.chunks.create(schema.dimension)
        at.documents.create(len(_NO_VECTOR))
        at.keywords.create()

    def drop_collection(self, collection: str) -> None:
        at = self._of(collection)
        at.keywords.drop()
        at.documents.drop()
        at.chunks.drop()

    def batch_upsert_documents(
        self, collection: str, documents: Sequence[DocumentRecord]
    ) -> BatchOutcome:
        unique = {document.document_id: document for document in documents}
        failed = {id_: fault for id_, d in unique.items() if (fault := document_fault(d))}
        good = [document for id_, document in unique.items() if id_ not in failed]
        self._of(collection).documents.upsert(
            [Row(d.document_id, _NO_VECTOR, "", document_metadata(d)) for d in good]
        )
        return BatchOutcome(tuple(document.document_id for document in good), failed)

    def batch_upsert_chunks(self, collection: str, chunks: Sequence[ChunkRecord]) -> BatchOutcome:
        at = self._of(collection)
        at.chunks.refresh()
        dimension = at.chunks.dimension()
        unique = {chunk.chunk_id: chunk for chunk in chunks}
        failed = {id_: fault for id_, c in unique.items() if (fault := chunk_fault(c, dimension))}
        good = [chunk for id_, chunk in unique.items() if id_ not in failed]
        at.chunks.upsert(
            [
                Row(
                    id=chunk.chunk_id,
                    vector=chunk.vector,
                    text=chunk.body,
                    metadata=chunk_metadata(chunk),
                )
                for chunk in good
            ]
        )
        at.keywords.upsert([Entry(c.chunk_id, c.terms, visible(c)) for c in good])
        return BatchOutcome(tuple(chunk.chunk_id for chunk in good), failed)

    def build_where(self, where: Where) -> BothHalves:
        return BothHalves(translate(where), filter_query(SCHEMA, where))

    def vector_query(
        self, collection: str, vector: Vector, limit: int, where: Where | None = None
    ) -> list[LegHit]:
        at = self._of(collection)
        _check_query(at.chunks, vector)
        native = translate(where) if where else None
        if where is None or native is not None:
            return best(lambda count: at.chunks.nearest(vector, count, native), limit)
        hits: list[LegHit] = []
        for batch in batches(at.keywords.ids(where), IDS_PER_CALL):
            among: ChromaWhere = {CHUNK_ID: {"$in": batch}}
            hits += best(lambda count, w=among: at.chunks.nearest(vector, count, w), limit)  # type: ignore[misc]
        return ranked(hits)[: max(limit, 0)]

    def keyword_query(
        self, collection: str, terms: str, limit: int, where: Where | None = None
    ) -> list[LegHit]:
        return self._of(collection).keywords.search(terms, limit, where)

    def get_chunks(
        self, collection: str, chunk_ids: Sequence[str], *, include_vector: bool = False
    ) -> list[StoredChunk]:
        rows = self._of(collection).chunks.get(chunk_ids, include_vector=include_vector)
        return [stored_chunk(row.id, row.text, row.metadata, row.vector) for row in rows]

    def get_documents(self, collection: str, document_ids: Sequence[str]) -> list[DocumentRecord]:
        rows = self._of(collection).documents.get(document_ids)
        return [stored_document(row.id, row.metadata) for row in rows]

    def chunk_ids(self, collection: str, document_id: str) -> dict[Half, set[str]]:
        at, item = self._of(collection), Atom(TEXT, "document_id", document_id)
        return {
            "vector": at.chunks.ids({key(item): document_id}),
            "keyword": set(at.keywords.ids_having(item)),
        }

    def delete_chunks(self, collection: str, chunk_ids: Iterable[str]) -> None:
        at, ids = self._of(collection), list(dict.fromkeys(chunk_ids))
        at.chunks.delete(ids)
        at.keywords.delete(ids)

    def delete_document(self, collection: str, document_id: str) -> None:
        at, item = self._of(collection), Atom(TEXT, "document_id", document_id)
        at.chunks.delete_where({key(item): document_id})
        at.keywords.delete_having(item)
        at.documents.delete([document_id])

    def count(self, collection: str, where: Where | None = None) -> int:
        return self._of(collection).keywords.count(where)

    def aggregate_group_by(
        self, collection: str, prop: str, where: Where | None = None
    ) -> list[tuple[Scalar, int]]:
        return self._of(collection).keywords.groups(prop, where)

    def _of(self, collection: str) -> _Parts:
        """Find the parts of a collection, the same objects for all threads."""
        with self._lock:
            if collection not in self._parts:
                self._parts[collection] = _Parts(
                    Table(self._connection, chunks_of(collection), collection),
                    Table(self._connection, documents_of(collection), collection),
                    KeywordIndex(self._index_dir / slug(collection), collection),
                )
            return self._parts[collection]


def _check_query(table: Table, vector: Vector) -> None:
    """Raise InvalidRequest unless the vector fits."""
    if np.shape(vector) != (table.dimension(),):
        table.refresh()
    if np.shape(vector) != (table.dimension(),) or not np.isfinite(vector).all():
        raise InvalidRequest(f"The query's vector is not {table.dimension()} finite numbers.")
