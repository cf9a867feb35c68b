"""The TF-IDF store: files in one folder, searched with scikit-learn and numpy, without a server."""

import logging
import sqlite3
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import numpy as np

from callslip.errors import NotFound, TransientError
from callslip.stores.batching import slices, write
from callslip.stores.contract import Store
from callslip.stores.metrics import METRICS, Metric
from callslip.stores.open_files import OpenFiles
from callslip.stores.properties.checks import sound_chunks, sound_documents
from callslip.stores.properties.filters import Where
from callslip.stores.records import (
    BatchOutcome,
    ChunkRecord,
    CollectionSchema,
    DocumentRecord,
    RetrieverHit,
    Scalar,
    StoredChunk,
    Value,
    Vector,
    VectorSpec,
    under,
    visible_in,
)
from callslip.stores.schemas import check_schema
from callslip.stores.tfidf import table
from callslip.stores.tfidf.catalog import Catalog
from callslip.stores.tfidf.filters import Clauses, mask, translate
from callslip.stores.tfidf.nearest import Floats
from callslip.stores.tfidf.partition import DUE, Partition, make_partition
from callslip.stores.ties import ranked

_CHUNKS_PER_WRITE = 1000
_BYTES_PER_WRITE = 16_000_000

_OPEN_PARTITIONS = 48
"""The most collections and tenants whose views stay in memory, the most recently used ones.

With 8 threads that read a partition at once, it keeps at most 13 file descriptors of its database
(one for each thread, `database.MOST_IDLE` logs and an index), and one of each mapped file: two of
words and one of each vector name. So 48 partitions have 768 of 1,024, and 48 more for each named
vector.
"""

log = logging.getLogger(__name__)


class TfidfStore(Store):
    """Each collection or tenant is a SQLite database and a snapshot of the TF-IDF fit.

    The score of the keyword retriever is the cosine over TF-IDF of words and pairs of adjacent
    words instead of BM25. Up to `cells.MANY` vectors are compared one by one, for any metric; of
    more, a search by the collection's metric reads the nearest cells.
    """

    kind = "tfidf"
    indexed = frozenset(METRICS)
    keyword_score = "tfidf"

    def __init__(self, folder: Path) -> None:
        self._catalog = Catalog(folder, make_partition)
        self._partitions = OpenFiles[Path, Partition](_OPEN_PARTITIONS)

    def ping(self) -> None:
        self._catalog.names()

    def probe(self) -> None:
        self._catalog.probe()

    def close(self) -> None:
        self._partitions.close_all()
        self._catalog.close()

    def ensure_schema(self, schema: CollectionSchema) -> None:
        check_schema(schema)
        self._catalog.ensure(schema)

    def schema(self, collection: str) -> CollectionSchema:
        return self._catalog.schema(collection)

    def collections(self) -> list[str]:
        return self._catalog.names()

    def drop_collection(self, collection: str) -> None:
        self._catalog.drop(collection)
        self._partitions.close_outdated()

    def ensure_tenant(self, collection: str, tenant: str) -> None:
        self._catalog.ensure_tenant(collection, tenant)

    def drop_tenant(self, collection: str, tenant: str) -> None:
        self._catalog.drop(collection, tenant)
        self._partitions.close_outdated()

    def tenants(self, collection: str) -> list[str]:
        return [tenant for tenant in self._catalog.tenants(collection) if tenant]

    def batch_upsert_documents(
        self, collection: str, documents: Sequence[DocumentRecord], *, tenant: str = ""
    ) -> BatchOutcome:
        good, failed = sound_documents(documents)
        with self._partition(collection, tenant).database.writing() as connection:
            table.put_documents(connection, good)
        return BatchOutcome(tuple(document.document_id for document in good), failed)

    def batch_upsert_chunks(
        self, collection: str, chunks: Sequence[ChunkRecord], *, tenant: str = ""
    ) -> BatchOutcome:
        at = self._partition(collection, tenant)
        good, failed = sound_chunks(chunks, at.schema)

        def put(some: Sequence[ChunkRecord]) -> dict[str, str]:
            with at.database.writing() as connection:
                table.put_chunks(connection, some)
            return {}

        cut = slices(good, count=_CHUNKS_PER_WRITE, size=_BYTES_PER_WRITE, size_of=_bytes)
        return write(cut, put, lambda chunk: chunk.chunk_id, failed=failed)

    def delete_chunks(self, collection: str, chunk_ids: Iterable[str], *, tenant: str = "") -> None:
        with self._partition(collection, tenant).database.writing() as connection:
            keys = table.keys_of(connection, chunk_ids)
            table.remove_keys(connection, list(keys.values()))

    def delete_documents(
        self, collection: str, document_ids: Collection[str], *, tenant: str = ""
    ) -> None:
        with self._partition(collection, tenant).database.writing() as connection:
            for document_id in document_ids:
                table.remove_document(connection, document_id)

    def build_where(self, where: Where) -> Clauses:
        return translate(where)

    def answers(self, spec: VectorSpec) -> frozenset[Metric]:
        return self.indexed

    def nearest(
        self,
        collection: str,
        vector: Vector,
        limit: int,
        where: Where | None = None,
        *,
        tenant: str = "",
        vector_name: str = "",
    ) -> list[RetrieverHit]:
        metric = self.schema(collection).vector(vector_name).metric
        name = collection, tenant, vector_name
        return self._near(name, vector, limit, where, metric, exact=False)

    def exact_query(
        self,
        collection: str,
        vector: Vector,
        limit: int,
        where: Where | None,
        *,
        tenant: str,
        vector_name: str,
        metric: Metric,
    ) -> list[RetrieverHit]:
        name = collection, tenant, vector_name
        return self._near(name, vector, limit, where, metric, exact=True)

    def _near(
        self,
        name: tuple[str, str, str],
        vector: Vector,
        limit: int,
        where: Where | None,
        metric: Metric,
        *,
        exact: bool,
    ) -> list[RetrieverHit]:
        """The nearest chunks by the vectors of a collection, tenant and vector name."""
        if limit < 1:
            return []
        collection, tenant, vector_name = name
        query = np.asarray(vector, np.float32)
        with self._partition(collection, tenant).searching() as (connection, view):
            passing = view.passing(connection, where)
            slots, scores = view.by_vector(metric, vector_name, query, limit, passing, exact=exact)
            ids = table.ids_of(connection, view.keys[slots])
        return _hits(ids, scores, limit)

    def keyword_query(
        self,
        collection: str,
        terms: str,
        limit: int,
        where: Where | None = None,
        *,
        tenant: str = "",
    ) -> list[RetrieverHit]:
        if limit < 1:
            return []
        with self._partition(collection, tenant).searching() as (connection, view):
            passing = view.passing(connection, where)
            slots, scores = view.by_terms(terms, limit, passing)
            ids = table.ids_of(connection, view.keys[slots])
        return _hits(ids, scores, limit)

    def get_chunks(
        self,
        collection: str,
        chunk_ids: Sequence[str],
        *,
        tenant: str = "",
        include_vector: bool = False,
        include_terms: bool = False,
    ) -> list[StoredChunk]:
        with self._partition(collection, tenant).database.reading() as connection:
            return list(
                table.chunks_of(
                    connection,
                    chunk_ids,
                    include_vector=include_vector,
                    include_terms=include_terms,
                )
            )

    def properties(
        self, collection: str, chunk_ids: Sequence[str], props: Iterable[str], *, tenant: str = ""
    ) -> dict[str, dict[str, Value]]:
        wanted = frozenset(props)
        with self._partition(collection, tenant).database.reading() as connection:
            records = table.records_of(connection, chunk_ids)
            return {i: under(wanted, visible_in(record)) for i, record in records}

    def terms(
        self, collection: str, chunk_ids: Sequence[str], *, tenant: str = ""
    ) -> dict[str, str]:
        with self._partition(collection, tenant).database.reading() as connection:
            return dict(table.terms_of(connection, chunk_ids))

    def get_documents(
        self, collection: str, document_ids: Sequence[str], *, tenant: str = ""
    ) -> list[DocumentRecord]:
        with self._partition(collection, tenant).database.reading() as connection:
            return list(table.documents_of(connection, document_ids))

    def find_ids(
        self, collection: str, where: Where | None = None, *, tenant: str = ""
    ) -> list[str]:
        with self._partition(collection, tenant).database.reading() as connection:
            if where is None:
                return table.all_ids(connection)
            return sorted(table.ids_of(connection, _matching(connection, where)))

    def chunk_ids(
        self, collection: str, document_id: str | None = None, *, tenant: str = ""
    ) -> dict[str, set[str]]:
        at = self._partition(collection, tenant)
        with at.database.reading() as connection:
            named = {
                f"vector:{name}": table.with_vector(connection, document_id, name)
                for name in at.schema.named
            }
            every = table.with_vector(connection, document_id, "")
            return {"vector": every, **named, "keyword": table.with_terms(connection, document_id)}

    def document_ids(self, collection: str, *, tenant: str = "") -> set[str]:
        with self._partition(collection, tenant).database.reading() as connection:
            rows = connection.execute(
                "SELECT document_id FROM documents UNION SELECT document_id FROM chunks"
            )
            return {document_id for (document_id,) in rows}

    def count(self, collection: str, where: Where | None = None, *, tenant: str = "") -> int:
        with self._partition(collection, tenant).database.reading() as connection:
            if where is None:
                return table.state(connection).rows
            return len(_matching(connection, where))

    def aggregate_group_by(
        self, collection: str, prop: str, where: Where | None = None, *, tenant: str = ""
    ) -> list[tuple[Scalar, int]]:
        with self._partition(collection, tenant).database.reading() as connection:
            among = None if where is None else _matching(connection, where)
            return table.groups(connection, prop, among)

    def count_documents(
        self,
        collection: str,
        prop: str,
        values: Sequence[Scalar],
        where: Where | None = None,
        *,
        tenant: str = "",
    ) -> list[int]:
        with self._partition(collection, tenant).database.reading() as connection:
            among = None if where is None else _matching(connection, where)
            counted = table.documents_by_value(connection, prop, among)
        documents = {(type(value), value): number for value, number in counted}
        return [documents.get((type(value), value), 0) for value in values]

    def maintain(self) -> None:
        """Refit the collections and tenants that are due, and remove folders that a crash left.

        Continues after the TransientError of a collection, and raises the last one at the end.
        """
        self._catalog.sweep()
        failed: TransientError | None = None
        for collection in self.collections():
            try:
                for tenant in self._catalog.tenants(collection):
                    at = self._partition(collection, tenant)
                    if at.is_due():
                        at.refit(DUE, wait=0)
            except NotFound:
                continue  # dropped meanwhile
            except TransientError as error:
                log.warning("No refit of collection %s: %s", collection, error.detail)
                failed = error
        if failed:
            raise failed

    def compact(self, collection: str, *, tenant: str = "") -> None:
        self._partition(collection, tenant).compact()

    def refit(self, collection: str, tenant: str = "") -> None:
        """Refit now, so that scores use the document frequencies of all stored chunks."""
        self._partition(collection, tenant).refit()

    def _partition(self, collection: str, tenant: str) -> Partition:
        """The partition of a collection or tenant, the same object for all threads."""
        try:
            schema, folder = self._catalog.find(collection, tenant)
        except NotFound:
            self._partitions.close_outdated()
            raise
        return self._partitions.get(folder, lambda: Partition(folder, schema))


def _matching(connection: sqlite3.Connection, where: Where) -> table.Keys:
    keys = table.all_keys(connection)
    return keys[mask(connection, translate(where), keys)]


def _hits(ids: Sequence[str], scores: Floats, limit: int) -> list[RetrieverHit]:
    pairs = zip(ids, scores.tolist(), strict=True)
    return ranked(RetrieverHit(chunk_id, score) for chunk_id, score in pairs)[:limit]


def _bytes(chunk: ChunkRecord) -> int:
    """The approximate size of a chunk in a transaction, in bytes."""
    return len(chunk.body) + len(chunk.terms) + chunk.vector.nbytes
