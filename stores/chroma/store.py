"""The Chroma store: vectors and texts on a Chroma server, keywords in a Tantivy index beside it.

The two halves are written one after the other. Both writes are idempotent, so that a crash between
them is repaired by repeating the step; `chunk_ids` shows what each half holds.
"""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import tantivy

from callslip.errors import CollectionNotFound, NotFound
from stores.atoms import TEXT, Atom
from stores.batching import slices, write
from stores.checks import sound_chunks, sound_documents
from stores.chroma import names
from stores.chroma.connection import Connection
from stores.chroma.metadata import (
    CHUNK_ID,
    chunk_metadata,
    document_metadata,
    stored_chunk,
    stored_document,
)
from stores.chroma.table import BYTES_PER_CALL, IDS_PER_CALL, Row, Table, batches
from stores.chroma.where import ChromaWhere, key, translate
from stores.contract import Store
from stores.filters import Where
from stores.keyword_filter import filter_query
from stores.keyword_index import SCHEMA, Entry, KeywordIndex
from stores.levels import PASSAGE, PASSAGES
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
from stores.schemas import (
    check_made,
    check_schema,
    check_tenant,
    dump_schema,
    load_schema,
    tenant_missing,
)
from stores.ties import best, ranked

_NO_VECTOR = np.ones(1, np.float32)
"""Of documents: Chroma stores nothing without one."""

_CHUNKS_PER_WRITE = 5000
_TERMS_PER_CALL = 1000


@dataclass(frozen=True)
class BothHalves:
    """A filter in each half's language; `vector` is None where only the keyword half can say it."""

    vector: ChromaWhere | None
    keyword: tantivy.Query


Tables = Mapping[str, Table]
"""Chunks by the name of their vector; the default one's is empty."""


@dataclass(frozen=True)
class _Parts:
    """Where a collection, or one tenant of it, lies.

    Chunks of higher levels than passages have tables of their own: a filter of Chroma's reads
    every row, and what is searched are passages as a rule.
    """

    passages: Tables
    parents: Tables
    documents: Table
    keywords: KeywordIndex

    @property
    def vectors(self) -> list[Table]:
        """The tables of all vectors."""
        return [*self.passages.values(), *self.parents.values()]

    def rows(
        self, name: str, chunk_ids: Sequence[str], *, include_vector: bool = False
    ) -> list[Row]:
        """The rows of these chunks, in this order; unknown ids are left out."""
        found = self.passages[name].get(chunk_ids, include_vector=include_vector)
        if len(found) == len(chunk_ids):
            return found
        by_id = {row.id: row for row in found}
        rest = [i for i in chunk_ids if i not in by_id]
        above = self.parents[name].get(rest, include_vector=include_vector)
        by_id |= {row.id: row for row in above}
        return [by_id[i] for i in chunk_ids if i in by_id]

    def ids(self, name: str, having: ChromaWhere | None) -> set[str]:
        """The ids of all chunks that match."""
        return self.passages[name].ids(having) | self.parents[name].ids(having)

    def drop(self) -> None:
        self.keywords.drop()
        self.documents.drop()
        for table in self.vectors:
            table.drop()


class ChromaStore(Store):
    """A collection is some Chroma collections and a folder in `index_dir`, each tenant's its own.

    One Chroma collection holds the schema, one the documents, one the passages with their default
    vector, one the chunks above them, and two more each name of a vector. Nothing is connected
    before the first call.
    """

    kind = "chroma"
    indexed = frozenset[Metric]({"cosine", "dot", "l2-squared"})

    def __init__(self, url: str, index_dir: Path) -> None:
        self._connection = Connection(url)
        self._index_dir = index_dir
        self._parts: dict[tuple[str, str], tuple[CollectionSchema, _Parts]] = {}
        self._lock = threading.Lock()

    def ping(self) -> None:
        self._connection.ping()

    def close(self) -> None:
        self._connection.close()

    def ensure_schema(self, schema: CollectionSchema) -> None:
        check_schema(schema)
        table = self._schema_table(schema.name)
        table.create({"schema": dump_schema(schema)})
        check_made(load_schema(table.about()["schema"]), schema)
        if not schema.tenants:
            self._create(schema, self._of(schema.name))

    def schema(self, collection: str) -> CollectionSchema:
        return load_schema(self._schema_table(collection).about()["schema"])

    def collections(self) -> list[str]:
        found = (names.collection_of(name) for name in self._connection.names())
        return sorted(name for name in found if name is not None)

    def drop_collection(self, collection: str) -> None:
        try:
            schema = self.schema(collection)
        except CollectionNotFound:
            return
        places = self.tenants(collection) if schema.tenants else [""]
        for tenant in places:
            self._placed(schema, tenant).drop()
        self._schema_table(collection).drop()

    def ensure_tenant(self, collection: str, tenant: str) -> None:
        schema = self._fresh_schema(collection)
        check_tenant(schema, tenant)
        self._create(schema, self._placed(schema, tenant))

    def drop_tenant(self, collection: str, tenant: str) -> None:
        schema = self._fresh_schema(collection)
        check_tenant(schema, tenant)
        self._placed(schema, tenant).drop()

    def tenants(self, collection: str) -> list[str]:
        self._fresh_schema(collection)
        found = (names.tenant_of(collection, name) for name in self._connection.names())
        return sorted(name for name in found if name is not None)

    def batch_upsert_documents(
        self, collection: str, documents: Sequence[DocumentRecord], *, tenant: str = ""
    ) -> BatchOutcome:
        good, failed = sound_documents(documents)
        self._of(collection, tenant).documents.upsert(
            [Row(d.document_id, _NO_VECTOR, "", document_metadata(d)) for d in good]
        )
        return BatchOutcome(tuple(document.document_id for document in good), failed)

    def batch_upsert_chunks(
        self, collection: str, chunks: Sequence[ChunkRecord], *, tenant: str = ""
    ) -> BatchOutcome:
        schema = self._fresh_schema(collection)
        at = self._of(collection, tenant)
        for table in at.vectors:
            table.refresh()
        good, failed = sound_chunks(chunks, schema)
        cut = slices(
            good, count=_CHUNKS_PER_WRITE, size=BYTES_PER_CALL, size_of=lambda c: 3 * len(c.body)
        )

        def put(some: Sequence[ChunkRecord]) -> dict[str, str]:
            _put(at, schema, some)
            return {}

        return write(cut, put, lambda chunk: chunk.chunk_id, failed=failed)

    def build_where(self, where: Where) -> BothHalves:
        return BothHalves(translate(where), filter_query(SCHEMA, where))

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
        at = self._of(collection, tenant)
        native = translate(where) if where else None
        listed: list[ChromaWhere] = []
        if where and native is None:
            found = batches(at.keywords.ids(where), IDS_PER_CALL)
            listed = [{CHUNK_ID: {"$in": batch}} for batch in found]
        hits: list[LegHit] = []
        for tables, rest in _asked(at, where):
            table = tables[vector_name]
            filters = listed if where and native is None else [translate(rest) if rest else None]
            for among in filters:
                hits += best(lambda n, t=table, w=among: t.nearest(vector, n, w), limit)  # type: ignore[misc]
        return ranked(hits)[: max(limit, 0)]

    def keyword_query(
        self,
        collection: str,
        terms: str,
        limit: int,
        where: Where | None = None,
        *,
        tenant: str = "",
    ) -> list[LegHit]:
        return self._of(collection, tenant).keywords.search(terms, limit, where)

    def get_chunks(
        self,
        collection: str,
        chunk_ids: Sequence[str],
        *,
        tenant: str = "",
        include_vector: bool = False,
        include_terms: bool = False,
    ) -> list[StoredChunk]:
        at = self._of(collection, tenant)
        rows = at.rows("", chunk_ids, include_vector=include_vector)
        vectors: dict[str, dict[str, Vector]] = {row.id: {} for row in rows}
        for name in at.passages if include_vector else ():
            held = at.rows(name, list(vectors), include_vector=True) if name else rows
            for row in held:
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

    def get_documents(
        self, collection: str, document_ids: Sequence[str], *, tenant: str = ""
    ) -> list[DocumentRecord]:
        rows = self._of(collection, tenant).documents.get(document_ids)
        return [stored_document(row.id, row.metadata) for row in rows]

    def find_ids(
        self, collection: str, where: Where | None = None, *, tenant: str = ""
    ) -> list[str]:
        return sorted(self._of(collection, tenant).keywords.ids(where))

    def chunk_ids(
        self, collection: str, document_id: str | None = None, *, tenant: str = ""
    ) -> dict[str, set[str]]:
        at = self._of(collection, tenant)
        item = None if document_id is None else Atom(TEXT, "document_id", document_id)
        having: ChromaWhere | None = None if item is None else {key(item): document_id}
        keywords = at.keywords.ids(None) if item is None else at.keywords.ids_having(item)
        halves = {f"vector:{name}" if name else "vector": name for name in at.passages}
        return {
            **{half: at.ids(name, having) for half, name in halves.items()},
            "keyword": set(keywords),
        }

    def document_ids(self, collection: str, *, tenant: str = "") -> set[str]:
        at = self._of(collection, tenant)
        lost = at.ids("", None) - set(at.keywords.ids(None))  # of a crash between the halves
        return (
            at.documents.ids(None)
            | set(at.keywords.values("document_id"))
            | {c.document_id for c in self.get_chunks(collection, sorted(lost), tenant=tenant)}
        )

    def delete_chunks(self, collection: str, chunk_ids: Iterable[str], *, tenant: str = "") -> None:
        at, ids = self._of(collection, tenant), list(dict.fromkeys(chunk_ids))
        for table in at.vectors:
            table.delete(ids)
        at.keywords.delete(ids)

    def delete_document(self, collection: str, document_id: str, *, tenant: str = "") -> None:
        at, item = self._of(collection, tenant), Atom(TEXT, "document_id", document_id)
        for table in at.vectors:
            table.delete_where({key(item): document_id})
        at.keywords.delete_having(item)
        at.documents.delete([document_id])

    def count(self, collection: str, where: Where | None = None, *, tenant: str = "") -> int:
        return self._of(collection, tenant).keywords.count(where)

    def aggregate_group_by(
        self, collection: str, prop: str, where: Where | None = None, *, tenant: str = ""
    ) -> list[tuple[Scalar, int]]:
        return self._of(collection, tenant).keywords.groups(prop, where)

    def forget(self, collection: str) -> None:
        self._schema_table(collection).refresh()

    def _fresh_schema(self, collection: str) -> CollectionSchema:
        self.forget(collection)
        return self.schema(collection)

    def _schema_table(self, collection: str) -> Table:
        missing = CollectionNotFound(f"Collection {collection} does not exist.")
        return Table(self._connection, names.schema_of(collection), missing)

    def _create(self, schema: CollectionSchema, at: _Parts) -> None:
        for table in (*at.vectors, at.documents):
            table.create({"of": schema.name})
        at.keywords.create()

    def _of(self, collection: str, tenant: str = "") -> _Parts:
        """Find the parts of a collection or a tenant, the same objects for all threads."""
        schema = self.schema(collection)
        check_tenant(schema, tenant)
        return self._placed(schema, tenant)

    def _placed(self, schema: CollectionSchema, tenant: str) -> _Parts:
        with self._lock:
            known, parts = self._parts.get((schema.name, tenant), (None, None))
            if parts is None or known != schema:
                parts = self._make(schema, tenant)
                self._parts[schema.name, tenant] = schema, parts
            return parts

    def _make(self, schema: CollectionSchema, tenant: str) -> _Parts:
        collection = schema.name
        missing: NotFound = CollectionNotFound(f"Collection {collection} does not exist.")
        if tenant:
            missing = tenant_missing(collection, tenant)

        def tables(name_of: Callable[[str, str, str], str]) -> dict[str, Table]:
            return {
                name: Table(
                    self._connection,
                    name_of(collection, tenant, name),
                    missing,
                    schema.vector(name).metric,
                )
                for name in ("", *schema.named)
            }

        return _Parts(
            tables(names.chunks_of),
            tables(names.parents_of),
            Table(self._connection, names.documents_of(collection, tenant), missing),
            KeywordIndex(
                self._index_dir / names.folder_of(collection, tenant), collection, missing
            ),
        )


def _asked(at: _Parts, where: Where | None) -> list[tuple[Tables, Where | None]]:
    """The tables that a filter leaves, each with what of it remains to be asked there."""
    both = [(at.passages, where), (at.parents, where)]
    for condition in where.every if where else ():
        if condition == PASSAGES and where:
            rest = replace(where, every=tuple(c for c in where.every if c != PASSAGES))
            return [(at.passages, rest if rest.every or rest.some else None)]
        if condition.prop == "level" and condition.operator == "==":
            (level,) = condition.values
            return both[:1] if isinstance(level, int | float) and level >= PASSAGE else both[1:]
    return both


def _put(at: _Parts, schema: CollectionSchema, chunks: Sequence[ChunkRecord]) -> None:
    """Write chunks into every half."""
    passages = [chunk for chunk in chunks if chunk.level >= PASSAGE]
    parents = [chunk for chunk in chunks if chunk.level < PASSAGE]
    _put_vectors(at.passages, at.parents, schema, passages)
    _put_vectors(at.parents, at.passages, schema, parents)
    at.keywords.upsert([Entry(c.chunk_id, c.terms, visible(c)) for c in chunks])


def _put_vectors(
    to: Tables, other: Tables, schema: CollectionSchema, chunks: Sequence[ChunkRecord]
) -> None:
    """Write chunks of one level; what one had of another level or lost goes."""
    if not chunks:
        return
    ids = [chunk.chunk_id for chunk in chunks]
    metadata = [chunk_metadata(chunk, _rescaled(chunk, schema)) for chunk in chunks]
    both = list(zip(chunks, metadata, strict=True))
    to[""].upsert([Row(c.chunk_id, c.vector, c.body, m) for c, m in both])
    for name, table in to.items():
        if name:
            having = [(c, m) for c, m in both if name in c.named]
            table.upsert([Row(c.chunk_id, c.named[name], "", m) for c, m in having])
            table.delete([c.chunk_id for c in chunks if name not in c.named])
    if moved := other[""].ids_among(ids):
        for table in other.values():
            table.delete(moved)


def _rescaled(chunk: ChunkRecord, schema: CollectionSchema) -> dict[str, Vector]:
    """The vectors that Chroma would not give back: in a cosine space it makes them length 1."""
    vectors = {"": chunk.vector, **chunk.named}
    specs = {name: schema.vector(name) for name in vectors}
    return {
        name: vector
        for name, vector in vectors.items()
        if specs[name].metric == "cosine" and not specs[name].normalized
    }
