"""The Chroma store: vectors and texts on a Chroma server, keywords in Tantivy indexes beside it.

The vectors are written first, then the keywords. Both writes are idempotent, so that repeating the
step repairs a crash between them; `chunk_ids` returns the contents of each index.
"""

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import tantivy

from callslip.errors import (
    CollectionNotFound,
    KeywordsDown,
    KeywordsLost,
    TenantNotFound,
)
from callslip.stores.batching import slices, write
from callslip.stores.chroma import names
from callslip.stores.chroma.connection import Connection
from callslip.stores.chroma.metadata import (
    DOCUMENT_ID,
    copied_chunk,
    document_metadata,
    stored_chunk,
    stored_document,
)
from callslip.stores.chroma.scope import Scope, put_chunks
from callslip.stores.chroma.scopes import Scopes
from callslip.stores.chroma.table import BYTES_PER_CALL, Row, batches
from callslip.stores.contract import Store
from callslip.stores.fulltext.contract import KeywordIndexes
from callslip.stores.fulltext.filters import filter_query
from callslip.stores.metrics import Metric
from callslip.stores.properties.checks import sound_chunks, sound_documents
from callslip.stores.properties.filters import Where
from callslip.stores.properties.terms import TEXT, PropertyTerm
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
)
from callslip.stores.schemas import (
    check_made,
    check_schema,
    check_tenant,
    dump_schema,
    load_schema,
)
from callslip.stores.ties import ranked

_NO_VECTOR = np.ones(1, np.float32)
"""The vector of every document: Chroma stores nothing without a vector."""

_CHUNKS_PER_WRITE = 5000
_TERMS_PER_CALL = 1000
_DOCUMENTS_PER_CALL = 64

FIT_SECONDS = 86_400.0
"""Seconds between two looks at the sizes of all tables."""


class ChromaStore(Store):
    """A collection is several Chroma collections and a keyword index, separate by tenant.

    One Chroma collection stores the schema, one the documents, one the passages with their default
    vector, and one the chunks of documents and sections. Each named vector has two more Chroma
    collections, for passages and for the other chunks. The store connects at its first call.
    """

    kind = "chroma"
    indexed = frozenset[Metric]({"cosine", "dot", "l2-squared"})
    local_keywords = True

    def __init__(self, url: str, indexes: KeywordIndexes, tenant: str | None = None) -> None:
        """`tenant` is Chroma's, by default that of a server without one of Callslip."""
        self._connection = Connection(url, tenant)
        self._indexes = indexes
        self._scopes = Scopes(self._connection, indexes)
        self._fit_at = 0.0

    def ping(self) -> None:
        self._connection.ping()
        self._indexes.ping()

    def probe(self) -> None:
        self._connection.probe()
        self._indexes.probe()

    def close(self) -> None:
        self._connection.close()
        self._indexes.close()

    def check_names(self, collection: str, tenant: str = "") -> None:
        names.chunks_of(collection, tenant)

    def ensure_schema(self, schema: CollectionSchema) -> None:
        check_schema(schema)
        table = self._scopes.schema_table(schema.name)
        table.create({"schema": dump_schema(schema)})
        check_made(load_schema(table.about()["schema"]), schema)
        if not schema.tenants:
            self._create(schema, self._scopes.of(schema.name))

    def schema(self, collection: str) -> CollectionSchema:
        return self._scopes.schema(collection)

    def collections(self) -> list[str]:
        matches = (names.collection_of(name) for name in self._connection.names())
        return sorted(name for name in matches if name is not None)

    def drop_collection(self, collection: str) -> None:
        try:
            schema = self.schema(collection)
        except CollectionNotFound:
            return
        tables = [name.removesuffix(names.OLD) for name in self._connection.names()]
        for tenant in _tenants(collection, tables) if schema.tenants else [""]:
            self._scopes.of_schema(schema, tenant).drop()
        self._scopes.schema_table(collection).drop()

    def ensure_tenant(self, collection: str, tenant: str) -> None:
        schema = self._fresh_schema(collection)
        check_tenant(schema, tenant)
        self._create(schema, self._scopes.of_schema(schema, tenant))

    def drop_tenant(self, collection: str, tenant: str) -> None:
        schema = self._fresh_schema(collection)
        check_tenant(schema, tenant)
        self._scopes.of_schema(schema, tenant).drop()

    def tenants(self, collection: str) -> list[str]:
        self._fresh_schema(collection)
        return _tenants(collection, self._connection.names())

    def batch_upsert_documents(
        self, collection: str, documents: Sequence[DocumentRecord], *, tenant: str = ""
    ) -> BatchOutcome:
        good, failed = sound_documents(documents)
        self._scopes.of(collection, tenant).documents.upsert(
            [Row(d.document_id, _NO_VECTOR, "", document_metadata(d)) for d in good]
        )
        return BatchOutcome(tuple(document.document_id for document in good), failed)

    def batch_upsert_chunks(
        self, collection: str, chunks: Sequence[ChunkRecord], *, tenant: str = ""
    ) -> BatchOutcome:
        schema = self._fresh_schema(collection)
        at = self._scopes.of(collection, tenant)
        for table in at.vectors:
            table.refresh()
        good, failed = sound_chunks(chunks, schema)
        cut = slices(
            good, count=_CHUNKS_PER_WRITE, size=BYTES_PER_CALL, size_of=lambda c: 3 * len(c.body)
        )

        def put(some: Sequence[ChunkRecord]) -> dict[str, str]:
            put_chunks(at, schema, some)
            return {}

        return write(cut, put, lambda chunk: chunk.chunk_id, failed=failed)

    def build_where(self, where: Where) -> tantivy.Query:
        return filter_query(where)

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
        matches = self._scopes.of(collection, tenant).nearest(
            vector, limit, where, name=vector_name
        )
        return ranked(matches)[: max(limit, 0)]

    def keyword_query(
        self,
        collection: str,
        terms: str,
        limit: int,
        where: Where | None = None,
        *,
        tenant: str = "",
    ) -> list[RetrieverHit]:
        return self._scopes.keywords(collection, tenant).search(terms, limit, where)

    def copies(
        self, collection: str, chunk_ids: Sequence[str], *, tenant: str = ""
    ) -> list[StoredChunk]:
        copies = self._scopes.keywords(collection, tenant).copies(list(dict.fromkeys(chunk_ids)))
        return [copied_chunk(i, copies[i]) for i in chunk_ids if i in copies]

    def get_chunks(
        self,
        collection: str,
        chunk_ids: Sequence[str],
        *,
        tenant: str = "",
        include_vector: bool = False,
        include_terms: bool = False,
    ) -> list[StoredChunk]:
        at = self._scopes.of(collection, tenant)
        rows = at.rows("", chunk_ids, include_vector=include_vector)
        vectors: dict[str, dict[str, Vector]] = {row.id: {} for row in rows}
        for name in at.passages if include_vector else ():
            vector_rows = at.rows(name, list(vectors), include_vector=True) if name else rows
            for row in vector_rows:
                if row.vector is not None:
                    vectors[row.id][name] = row.vector
        terms: dict[str, str] = {}
        for batch in batches(vectors, _TERMS_PER_CALL) if include_terms else ():
            terms |= at.keywords.terms(batch)
        return [
            stored_chunk(
                row.id, row.text, row.metadata, vectors=vectors[row.id], terms=terms.get(row.id)
            )
            for row in rows
        ]

    def properties(
        self, collection: str, chunk_ids: Sequence[str], props: Iterable[str], *, tenant: str = ""
    ) -> dict[str, dict[str, Value]]:
        """Read the properties that are stored with the keyword index, if a chunk has them there.

        Chroma takes 50 ms to return the metadata of 300 chunks.
        """
        wanted = frozenset(props)
        ids = list(dict.fromkeys(chunk_ids))
        known: dict[str, dict[str, Any]] = {}
        with suppress(KeywordsDown):
            known = self._scopes.keywords(collection, tenant).properties(ids)
        if old := [chunk_id for chunk_id in ids if chunk_id not in known]:
            known |= {
                c.chunk_id: visible(c) for c in self.get_chunks(collection, old, tenant=tenant)
            }
        return {i: under(wanted, known[i]) for i in ids if i in known}

    def terms(
        self, collection: str, chunk_ids: Sequence[str], *, tenant: str = ""
    ) -> dict[str, str]:
        return self._scopes.keywords(collection, tenant).terms(list(dict.fromkeys(chunk_ids)))

    def get_documents(
        self, collection: str, document_ids: Sequence[str], *, tenant: str = ""
    ) -> list[DocumentRecord]:
        rows = self._scopes.of(collection, tenant).documents.get(document_ids)
        return [stored_document(row.id, row.metadata) for row in rows]

    def find_ids(
        self, collection: str, where: Where | None = None, *, tenant: str = ""
    ) -> list[str]:
        return sorted(self._scopes.of(collection, tenant).keywords.ids(where))

    def chunk_ids(
        self, collection: str, document_id: str | None = None, *, tenant: str = ""
    ) -> dict[str, set[str]]:
        at = self._scopes.of(collection, tenant)
        item = None if document_id is None else _document_term(document_id)
        having = None if item is None else {DOCUMENT_ID: document_id}
        vectors = {half: at.ids(name, having) for half, name in _halves(at).items()}
        keywords: set[str] = set()
        with suppress(KeywordsLost):
            keywords.update(at.keywords.ids(None) if item is None else at.keywords.ids_having(item))
        return vectors | {"keyword": keywords}

    def chunk_ids_of(
        self, collection: str, document_ids: Collection[str], *, tenant: str = ""
    ) -> dict[str, dict[str, set[str]]]:
        at, owners = self._scopes.of(collection, tenant), dict[str, str]()
        names = _halves(at)
        halves = {i: {half: set[str]() for half in (*names, "keyword")} for i in document_ids}
        with suppress(KeywordsLost):
            for document_id, of_document in halves.items():
                of_document["keyword"].update(at.keywords.ids_having(_document_term(document_id)))
                owners |= dict.fromkeys(of_document["keyword"], document_id)
        for half, name in names.items():
            ids = set[str]()
            for some in batches(document_ids, _DOCUMENTS_PER_CALL):
                ids |= at.ids(name, {DOCUMENT_ID: {"$in": some}})
            lost = at.rows(name, sorted(ids - owners.keys()))  # the index lacks these
            owners |= {row.id: str(row.metadata[DOCUMENT_ID]) for row in lost}
            for chunk_id in ids & owners.keys():
                halves[owners[chunk_id]][half].add(chunk_id)
        return halves

    def document_ids(self, collection: str, *, tenant: str = "") -> set[str]:
        at = self._scopes.of(collection, tenant)
        lost, documents = at.ids("", None), at.documents.ids(None)
        with suppress(KeywordsLost):
            lost -= set(at.keywords.ids(None))  # after a crash between both writes
            documents |= set(at.keywords.values("document_id"))
        chunks = self.get_chunks(collection, sorted(lost), tenant=tenant)
        return documents | {chunk.document_id for chunk in chunks}

    def delete_chunks(self, collection: str, chunk_ids: Iterable[str], *, tenant: str = "") -> None:
        at, ids = self._scopes.of(collection, tenant), list(dict.fromkeys(chunk_ids))
        with at.keywords.undisturbed():
            for table in at.vectors:
                table.delete(ids)
            with suppress(KeywordsLost):
                at.keywords.delete(ids)

    def delete_documents(
        self, collection: str, document_ids: Collection[str], *, tenant: str = ""
    ) -> None:
        at = self._scopes.of(collection, tenant)
        with at.keywords.undisturbed():
            for some in batches(document_ids, _DOCUMENTS_PER_CALL):
                for table in at.vectors:
                    table.delete_where({DOCUMENT_ID: {"$in": some}})
                with suppress(KeywordsLost):
                    items = map(_document_term, some)
                    ids = [i for item in items for i in at.keywords.ids_having(item)]
                    if ids:
                        at.keywords.delete(ids)
                at.documents.delete(some)

    def count(self, collection: str, where: Where | None = None, *, tenant: str = "") -> int:
        return self._scopes.keywords(collection, tenant).count(where)

    def aggregate_group_by(
        self, collection: str, prop: str, where: Where | None = None, *, tenant: str = ""
    ) -> list[tuple[Scalar, int]]:
        return self._scopes.keywords(collection, tenant).groups(prop, where)

    def maintain(self) -> None:
        """Let the server write the graphs of large tables less often (`Table.fit`), once a day."""
        if time.monotonic() < self._fit_at:
            return
        for collection in self.collections():
            with suppress(CollectionNotFound, TenantNotFound):  # removed meanwhile
                schema = self.schema(collection)
                for tenant in self.tenants(collection) if schema.tenants else [""]:
                    for table in self._scopes.of_schema(schema, tenant).passages.values():
                        table.fit()
        self._fit_at = time.monotonic() + FIT_SECONDS  # after an error the next call tries again

    def compact(self, collection: str, *, tenant: str = "") -> None:
        at = self._scopes.of(collection, tenant)
        with at.keywords.undisturbed() as check:
            for table in (*at.vectors, at.documents):
                table.rewrite(check)
            at.keywords.compact()

    def forget(self, collection: str) -> None:
        self._scopes.schema_table(collection).refresh()

    def _fresh_schema(self, collection: str) -> CollectionSchema:
        self.forget(collection)
        return self.schema(collection)

    def _create(self, schema: CollectionSchema, at: Scope) -> None:
        tables = (*at.vectors, at.documents)
        if not all(table.exists() for table in tables):
            with at.keywords.undisturbed() as check:
                for table in tables:
                    table.restore()
                # An index whose tables Chroma has lost may have what was deleted meanwhile.
                if not at.documents.exists():
                    check()
                    at.keywords.drop()
                for table in tables:
                    table.create({"of": schema.name})
        at.keywords.create()


def _tenants(collection: str, tables: Iterable[str]) -> list[str]:
    tenants = {names.tenant_of(collection, table) for table in tables}
    return sorted(tenant for tenant in tenants if tenant is not None)


def _halves(at: Scope) -> Mapping[str, str]:
    """The vector names of a scope, by the name that `chunk_ids` has for their index."""
    return {f"vector:{name}" if name else "vector": name for name in at.passages}


def _document_term(document_id: str) -> PropertyTerm:
    return PropertyTerm(TEXT, "document_id", document_id)
