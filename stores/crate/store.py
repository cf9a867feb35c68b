"""The CrateDB store: each chunk is one row, with its vectors, its texts and its properties."""

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

from callslip.stores.batching import slices, write
from callslip.stores.contract import Store
from callslip.stores.crate import queries, reading, retrievers
from callslip.stores.crate.catalog import Catalog, Scope
from callslip.stores.crate.columns import names
from callslip.stores.crate.connection import Connection, Sql
from callslip.stores.crate.filters import EVERYTHING, NOTHING, marks, translate
from callslip.stores.crate.rows import (
    chunk_bytes,
    chunk_columns,
    chunk_row,
    document_key,
    document_row,
)
from callslip.stores.crate.tables import Layout, check_name, upsert, vector_column
from callslip.stores.fusion import Candidate
from callslip.stores.metrics import Metric
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
    under,
    visible,
    visible_in,
)
from callslip.stores.schemas import check_schema

T = TypeVar("T")

ROWS_PER_CALL = 1000
BYTES_PER_CALL = 8_000_000
"""CrateDB refuses a request of more than 100 MB, and has several requests in memory at once."""

_DOCUMENT_COLUMNS = ("id", "table_name", "document_id", "record")


class CrateStore(Store):
    """A collection is a table, or one table per tenant, with separate indexes and statistics.

    The store connects at its first call. Tables are refreshed before a write is acknowledged, so
    that every later query sees the write.
    """

    kind = "crate"
    indexed = frozenset[Metric]({"cosine", "l2-squared"})

    def __init__(self, connection: Connection, layout: Layout) -> None:
        self._connection = connection
        self._layout = layout
        self._catalog = Catalog(self._connection, layout)

    def ping(self) -> None:
        self._connection.ping()

    def probe(self) -> None:
        self.ping()
        self._catalog.probe()

    def close(self) -> None:
        self._connection.close()

    def check_names(self, collection: str, tenant: str = "") -> None:
        check_name(collection)
        check_name(tenant)

    def ensure_schema(self, schema: CollectionSchema) -> None:
        check_schema(schema)
        self._catalog.create_collection(schema)

    def schema(self, collection: str) -> CollectionSchema:
        return self._catalog.schema(collection)

    def collections(self) -> list[str]:
        return self._catalog.collections()

    def drop_collection(self, collection: str) -> None:
        self._catalog.drop_collection(collection)

    def ensure_tenant(self, collection: str, tenant: str) -> None:
        self._catalog.create_tenant(collection, tenant)

    def drop_tenant(self, collection: str, tenant: str) -> None:
        self._catalog.drop_tenant(collection, tenant)

    def tenants(self, collection: str) -> list[str]:
        return self._catalog.tenants(collection)

    def forget(self, collection: str) -> None:
        self._catalog.forget(collection)

    # Writing

    def batch_upsert_documents(
        self, collection: str, documents: Sequence[DocumentRecord], *, tenant: str = ""
    ) -> BatchOutcome:
        at = self._catalog.existing(collection, tenant)
        good, failed = sound_documents(documents)
        rows = [document_row(at.name, document) for document in good]
        table = self._layout.documents

        def put(some: Sequence[list[object]]) -> dict[str, str]:
            return self._put(table, _DOCUMENT_COLUMNS, "id", some, [str(row[2]) for row in some])

        cut = slices(
            rows, count=ROWS_PER_CALL, size=BYTES_PER_CALL, size_of=lambda row: len(str(row[3]))
        )
        return write(cut, put, lambda row: str(row[2]), failed=failed)

    def batch_upsert_chunks(
        self, collection: str, chunks: Sequence[ChunkRecord], *, tenant: str = ""
    ) -> BatchOutcome:
        schema = self._catalog.existing(collection, tenant).schema
        good, failed = sound_chunks(chunks, schema)
        columns = chunk_columns(schema)

        def put(some: Sequence[ChunkRecord]) -> dict[str, str]:
            return self._catalog.on(collection, tenant, lambda at: put_at(at, some))

        def put_at(at: Scope, some: Sequence[ChunkRecord]) -> dict[str, str]:
            known = at.columns.making(names(visible(chunk) for chunk in some))
            rows = [chunk_row(chunk, schema, tenant, known) for chunk in some]
            return self._put(at.table, columns, "chunk_id", rows, [c.chunk_id for c in some])

        cut = slices(good, count=ROWS_PER_CALL, size=BYTES_PER_CALL, size_of=chunk_bytes)
        return write(cut, put, lambda chunk: chunk.chunk_id, failed=failed)

    def delete_chunks(self, collection: str, chunk_ids: Iterable[str], *, tenant: str = "") -> None:
        ids = list(dict.fromkeys(chunk_ids))

        def delete(at: Scope) -> None:
            for some in reading.batches(ids):
                self._run(f'DELETE FROM {at.table} WHERE "chunk_id" = ANY(?)', some)
            self._run(f"REFRESH TABLE {at.table}")

        self._catalog.on(collection, tenant, delete)

    def delete_documents(
        self, collection: str, document_ids: Collection[str], *, tenant: str = ""
    ) -> None:
        documents = self._layout.documents

        def delete(at: Scope) -> None:
            for document_id in document_ids:
                self._run(f'DELETE FROM {at.table} WHERE "document_id" = ?', document_id)
                key = document_key(at.name, document_id)
                self._run(f'DELETE FROM {documents} WHERE "id" = ?', key)
            self._run(f"REFRESH TABLE {at.table}, {documents}")

        self._catalog.on(collection, tenant, delete)

    # Searching

    def build_where(self, where: Where) -> Sql:
        return translate(where, lambda mark, name: f"{mark}:{name}")

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
        def search(at: Scope, condition: Sql | None) -> list[RetrieverHit]:
            return retrievers.nearest(self._connection, at, vector, limit, condition, vector_name)

        return self._matching(collection, tenant, where, search) or []

    def keyword_query(
        self,
        collection: str,
        terms: str,
        limit: int,
        where: Where | None = None,
        *,
        tenant: str = "",
    ) -> list[RetrieverHit]:
        def search(at: Scope, condition: Sql | None) -> list[RetrieverHit]:
            return retrievers.keyword(
                self._connection, queries.keyword(at.table, terms, limit, condition)
            )

        if limit < 1:
            return []
        return self._matching(collection, tenant, where, search) or []

    def native_query(
        self,
        collection: str,
        vector: Vector,
        terms: str,
        limit: int,
        where: Where | None,
        *,
        tenant: str,
        vector_name: str,
        method: Metric | None,
        horizon: float | None,
        pool: int,
        alpha: float,
    ) -> list[Candidate]:
        """Reciprocal rank fusion with k = 60; both retrievers weigh the same for any `alpha`."""
        self._indexed(collection, vector, vector_name, method)

        def search(at: Scope, condition: Sql | None) -> list[Candidate]:
            hits = retrievers.fused(
                self._connection,
                at,
                vector,
                partial(queries.keyword, at.table, terms),
                pool,
                condition,
                vector_name,
                horizon,
            )
            return hits[: max(limit, 0)]

        return self._matching(collection, tenant, where, search) or []

    # Reading

    def get_chunks(
        self,
        collection: str,
        chunk_ids: Sequence[str],
        *,
        tenant: str = "",
        include_vector: bool = False,
        include_terms: bool = False,
    ) -> list[StoredChunk]:
        def read(at: Scope) -> dict[str, StoredChunk]:
            return reading.chunks(
                self._connection,
                at,
                chunk_ids,
                include_vector=include_vector,
                include_terms=include_terms,
            )

        chunks = self._catalog.on(collection, tenant, read)
        return [chunks[id_] for id_ in chunk_ids if id_ in chunks]

    def properties(
        self, collection: str, chunk_ids: Sequence[str], props: Iterable[str], *, tenant: str = ""
    ) -> dict[str, dict[str, Value]]:
        wanted = frozenset(props)
        records = self._column("record", collection, chunk_ids, tenant)
        seen = {i: visible_in({"chunk_id": i, **json.loads(r)}) for i, r in records.items()}
        return {chunk_id: under(wanted, properties) for chunk_id, properties in seen.items()}

    def terms(
        self, collection: str, chunk_ids: Sequence[str], *, tenant: str = ""
    ) -> dict[str, str]:
        return self._column("terms", collection, chunk_ids, tenant)

    def _column(
        self, name: str, collection: str, chunk_ids: Sequence[str], tenant: str
    ) -> dict[str, str]:
        def read(at: Scope) -> dict[str, str]:
            return reading.column(self._connection, at, name, chunk_ids)

        return self._catalog.on(collection, tenant, read)

    def get_documents(
        self, collection: str, document_ids: Sequence[str], *, tenant: str = ""
    ) -> list[DocumentRecord]:
        at = self._catalog.existing(collection, tenant)
        documents = reading.documents(self._connection, at, self._layout.documents, document_ids)
        return [documents[id_] for id_ in document_ids if id_ in documents]

    def find_ids(
        self, collection: str, where: Where | None = None, *, tenant: str = ""
    ) -> list[str]:
        return sorted(self._matching(collection, tenant, where, self._ids) or [])

    def chunk_ids(
        self, collection: str, document_id: str | None = None, *, tenant: str = ""
    ) -> dict[str, set[str]]:
        among = None if document_id is None else Sql('"document_id" = ?', (document_id,))
        everyone = set(self._catalog.on(collection, tenant, lambda at: self._ids(at, among)))
        halves = {"vector": everyone, "keyword": set(everyone)}
        for name in self.schema(collection).named:

            def having(at: Scope, name: str = name) -> list[str]:
                has_vector = Sql(f'"{vector_column(at.schema, name)}" IS NOT NULL')
                return self._ids(at, queries.both([among, has_vector]))

            halves[f"vector:{name}"] = set(self._catalog.on(collection, tenant, having))
        return halves

    def document_ids(self, collection: str, *, tenant: str = "") -> set[str]:
        def read(at: Scope) -> set[str]:
            return reading.document_ids(self._connection, at, self._layout.documents)

        return self._catalog.on(collection, tenant, read)

    def count(self, collection: str, where: Where | None = None, *, tenant: str = "") -> int:
        def read(at: Scope, condition: Sql | None) -> int:
            return reading.count(self._connection, at, condition)

        return self._matching(collection, tenant, where, read) or 0

    def aggregate_group_by(
        self, collection: str, prop: str, where: Where | None = None, *, tenant: str = ""
    ) -> list[tuple[Scalar, int]]:
        def read(at: Scope, condition: Sql | None) -> Counter[tuple[str, Scalar]]:
            return reading.groups(self._connection, at, prop, condition)

        counts = self._matching(collection, tenant, where, read) or Counter()
        ranked = sorted(counts.items(), key=lambda group: (-group[1], group[0]))
        return [(value, count) for (_, value), count in ranked]

    # Statements

    def _run(self, text: str, *args: object) -> list[list[Any]]:
        return self._connection.run(Sql(text, args))

    def _put(
        self,
        table: str,
        columns: Sequence[str],
        key: str,
        rows: Sequence[Sequence[object]],
        ids: Sequence[str],
    ) -> dict[str, str]:
        """Write rows; return the reason for each refused row, by id."""
        refused = self._connection.run_many(upsert(table, columns, key), rows)
        self._run(f"REFRESH TABLE {table}")
        return {ids[row]: reason for row, reason in refused.items()}

    def _matching(
        self,
        collection: str,
        tenant: str,
        where: Where | None,
        act: Callable[[Scope, Sql | None], T],
    ) -> T | None:
        """Call `act` with the scope and the filter's condition; None if no row can match."""

        def run(at: Scope) -> T | None:
            if where is None:
                return act(at, None)
            condition = translate(where, at.columns.having(marks(where)).find)
            if condition == NOTHING:
                return None
            return act(at, None if condition == EVERYTHING else condition)

        return self._catalog.on(collection, tenant, run)

    def _ids(self, at: Scope, condition: Sql | None) -> list[str]:
        return reading.ids(self._connection, at, condition)
