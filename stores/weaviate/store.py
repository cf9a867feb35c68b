"""The Weaviate store: vectors, terms and properties on one server.

Each collection has a class of chunks and a class of documents.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence

from weaviate.classes.query import Filter
from weaviate.classes.tenants import Tenant
from weaviate.collections.classes.filters import FilterReturn

from callslip.errors import CollectionNotFound
from callslip.stores.batching import write
from callslip.stores.contract import Store
from callslip.stores.fusion import Candidate
from callslip.stores.metrics import METRICS, Metric
from callslip.stores.properties.checks import sound_chunks, sound_documents
from callslip.stores.properties.filters import Where, is_unicode
from callslip.stores.properties.terms import NUMBER, TEXT, PropertyTerm
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
from callslip.stores.schemas import check_made, check_schema, check_tenant
from callslip.stores.weaviate import classes, names, reading, retrievers, writing
from callslip.stores.weaviate.catalog import Catalog, Scope
from callslip.stores.weaviate.classes import BODY, RECORD, TERMS, VECTORS
from callslip.stores.weaviate.connection import Connection, answering
from callslip.stores.weaviate.filters import Clause, needed, translate
from callslip.stores.weaviate.objects import (
    chunk_object,
    document_object,
    stored_chunk,
    stored_document,
)
from callslip.stores.weaviate.values import as_properties, property_at, stored_value


class WeaviateStore(Store):
    """Needs Weaviate 1.33 or newer; tenants are Weaviate's own. Connects at the first call."""

    kind = "weaviate"
    indexed = frozenset[Metric](METRICS)

    def __init__(
        self, url: str, grpc_url: str | None, api_key: str | None, timeout_seconds: float
    ) -> None:
        self._connection = Connection(url, grpc_url, api_key, timeout_seconds)
        self._catalog = Catalog(self._connection)

    def ping(self) -> None:
        self._connection.ping()

    def probe(self) -> None:
        self.ping()
        classes.probe(self._connection)

    def close(self) -> None:
        self._connection.close()

    def check_names(self, collection: str, tenant: str = "") -> None:
        names.class_of(names.CHUNKS, collection)
        names.tenant_of(tenant)

    def ensure_schema(self, schema: CollectionSchema) -> None:
        check_schema(schema)
        self._connection.ping()  # a server that is not ready lacks classes that it has
        classes.make_classes(self._connection.client(), schema)
        check_made(self._catalog.look_up(schema.name).schema, schema)

    def schema(self, collection: str) -> CollectionSchema:
        return self._catalog.made(collection).schema

    def collections(self) -> list[str]:
        return classes.all_collections(self._connection.client())

    def drop_collection(self, collection: str) -> None:
        try:
            self._catalog.look_up(collection)
        except CollectionNotFound:
            return
        client = self._connection.client()
        with answering():  # the class that stores the schema goes last
            client.collections.delete(names.class_of(names.DOCUMENTS, collection))
            client.collections.delete(names.class_of(names.CHUNKS, collection))
        self.forget(collection)

    def ensure_tenant(self, collection: str, tenant: str) -> None:
        made = self._catalog.look_up(collection)
        check_tenant(made.schema, tenant)
        at = self._catalog.at(made)
        with answering():
            for class_ in (at.documents, at.chunks):
                class_.tenants.create([Tenant(name=names.tenant_of(tenant))])

    def drop_tenant(self, collection: str, tenant: str) -> None:
        made = self._catalog.look_up(collection)
        check_tenant(made.schema, tenant)
        at = self._catalog.at(made)
        with answering():
            for class_ in (at.documents, at.chunks):
                class_.tenants.remove([names.tenant_of(tenant)])

    def tenants(self, collection: str) -> list[str]:
        made = self._catalog.look_up(collection)
        if not made.schema.tenants:
            return []
        with answering():
            return sorted(map(names.read_tenant, self._catalog.at(made).chunks.tenants.get()))

    def batch_upsert_documents(
        self, collection: str, documents: Sequence[DocumentRecord], *, tenant: str = ""
    ) -> BatchOutcome:
        self._catalog.fresh(collection, tenant)
        good, failed = sound_documents(documents)
        step = writing.OBJECTS_PER_CALL
        cut = [good[i : i + step] for i in range(0, len(good), step)]

        def put(some: Sequence[DocumentRecord]) -> Mapping[str, str]:
            made = [(d.document_id, document_object(d)) for d in some]
            return self._catalog.on(collection, tenant, lambda at: writing.put(at.documents, made))

        return write(cut, put, lambda document: document.document_id, failed=failed)

    def batch_upsert_chunks(
        self, collection: str, chunks: Sequence[ChunkRecord], *, tenant: str = ""
    ) -> BatchOutcome:
        made = self._catalog.fresh(collection, tenant)
        good, failed = sound_chunks(chunks, made.schema)
        property_terms = {chunk.chunk_id: as_properties(visible(chunk)) for chunk in good}
        lacking = {name for each in property_terms.values() for name in each} - made.properties
        if lacking:
            classes.add_properties(self._catalog.at(made).chunks, lacking)
            self._catalog.look_up(collection)

        def put(some: Sequence[ChunkRecord]) -> Mapping[str, str]:
            def act(at: Scope) -> Mapping[str, str]:
                parents = writing.references(some, at.chunks, at.documents)
                objects = [
                    (
                        chunk.chunk_id,
                        chunk_object(chunk, property_terms[chunk.chunk_id], references),
                    )
                    for chunk, references in zip(some, parents, strict=True)
                ]
                return writing.put(at.chunks, objects)

            return self._catalog.on(collection, tenant, act)

        outcome = write(writing.waves(good), put, lambda chunk: chunk.chunk_id, failed=failed)
        stored = set(outcome.stored)
        return BatchOutcome(tuple(c.chunk_id for c in good if c.chunk_id in stored), outcome.failed)

    def delete_chunks(self, collection: str, chunk_ids: Iterable[str], *, tenant: str = "") -> None:
        uuids = [names.uuid_of(id_) for id_ in dict.fromkeys(chunk_ids) if is_unicode(id_)]

        def act(at: Scope) -> None:
            for start in range(0, len(uuids), reading.PAGE):
                some = uuids[start : start + reading.PAGE]
                writing.remove(at.chunks, Filter.by_id().contains_any(some))

        self._catalog.on(collection, tenant, act)

    def delete_documents(
        self, collection: str, document_ids: Collection[str], *, tenant: str = ""
    ) -> None:
        def act(at: Scope) -> None:
            for document_id in document_ids:
                writing.remove(at.chunks, _of_document(document_id))
                writing.remove(at.documents, Filter.by_id().equal(names.uuid_of(document_id)))

        self._catalog.on(collection, tenant, act)

    def build_where(self, where: Where) -> Clause:
        return translate(where, needed(where))

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
        def act(at: Scope) -> list[RetrieverHit]:
            metric = at.made.schema.vector(vector_name).metric
            return self._best(
                at, where, limit, retrievers.nearest(at.chunks, vector, vector_name, metric)
            )

        return self._catalog.on(collection, tenant, act)

    def keyword_query(
        self,
        collection: str,
        terms: str,
        limit: int,
        where: Where | None = None,
        *,
        tenant: str = "",
    ) -> list[RetrieverHit]:
        return self._catalog.on(
            collection,
            tenant,
            lambda at: self._best(at, where, limit, retrievers.by_terms(at.chunks, terms)),
        )

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
        """Run both retrievers with Weaviate's relative score fusion.

        Each retriever's ranks count only the chunks in Weaviate's response. Raises StoreCannot if
        `method` is not the metric of the index.
        """
        metric = self._indexed(collection, vector, vector_name, method)

        def act(at: Scope) -> list[Candidate]:
            clause = self._catalog.clause(at, where)
            if clause is False:
                return []
            filters = None if clause is True else clause
            count = min(max(limit, pool), reading.MOST_RESULTS)
            return retrievers.fused(
                at.chunks, vector, terms, count, filters, vector_name, metric, alpha
            )

        results = self._catalog.on(collection, tenant, act)
        if horizon is not None:
            hits = [RetrieverHit(each.chunk_id, each.score) for each in results]
            near = self._within(collection, vector, hits, tenant, vector_name, method, horizon)
            results = [each for each in results if each.chunk_id in near]
        return results[: max(limit, 0)]

    def get_chunks(
        self,
        collection: str,
        chunk_ids: Sequence[str],
        *,
        tenant: str = "",
        include_vector: bool = False,
        include_terms: bool = False,
    ) -> list[StoredChunk]:
        uuids = [names.uuid_of(id_) for id_ in chunk_ids if is_unicode(id_)]
        wanted = [RECORD, BODY, *([TERMS] if include_terms else [])]

        def act(at: Scope) -> list[StoredChunk]:
            results = reading.objects(at.chunks, uuids, wanted, vectors=include_vector)
            named = at.made.schema.named
            read = {u: stored_chunk(o.properties, o.vector, named) for u, o in results.items()}
            return [read[uuid] for uuid in uuids if uuid in read]

        return self._catalog.on(collection, tenant, act)

    def properties(
        self, collection: str, chunk_ids: Sequence[str], props: Iterable[str], *, tenant: str = ""
    ) -> dict[str, dict[str, Value]]:
        wanted = frozenset(props)
        records = self._property(RECORD, collection, chunk_ids, tenant)
        return {i: under(wanted, visible_in(json.loads(r))) for i, r in records.items()}

    def terms(
        self, collection: str, chunk_ids: Sequence[str], *, tenant: str = ""
    ) -> dict[str, str]:
        return self._property(TERMS, collection, chunk_ids, tenant)

    def _property(
        self, name: str, collection: str, chunk_ids: Sequence[str], tenant: str
    ) -> dict[str, str]:
        uuids = {i: names.uuid_of(i) for i in dict.fromkeys(chunk_ids) if is_unicode(i)}

        def act(at: Scope) -> dict[str, str]:
            results = reading.objects(at.chunks, list(uuids.values()), [name])
            return {i: results[u].properties[name] for i, u in uuids.items() if u in results}

        return self._catalog.on(collection, tenant, act)

    def get_documents(
        self, collection: str, document_ids: Sequence[str], *, tenant: str = ""
    ) -> list[DocumentRecord]:
        uuids = [names.uuid_of(id_) for id_ in document_ids if is_unicode(id_)]

        def act(at: Scope) -> list[DocumentRecord]:
            results = reading.objects(at.documents, uuids, [RECORD])
            return [stored_document(results[uuid].properties) for uuid in uuids if uuid in results]

        return self._catalog.on(collection, tenant, act)

    def find_ids(
        self, collection: str, where: Where | None = None, *, tenant: str = ""
    ) -> list[str]:
        def act(at: Scope) -> list[str]:
            clause = self._catalog.clause(at, where)
            if isinstance(clause, bool):
                return reading.values(at.chunks, "chunk_id") if clause else []
            return reading.values(at.chunks, "chunk_id", clause)

        return sorted(self._catalog.on(collection, tenant, act))

    def chunk_ids(
        self, collection: str, document_id: str | None = None, *, tenant: str = ""
    ) -> dict[str, set[str]]:
        of = None if document_id is None else _of_document(document_id)

        def act(at: Scope) -> dict[str, set[str]]:
            every = set(reading.values(at.chunks, "chunk_id", of))
            halves = {"vector": every, "keyword": every}
            for name in at.made.schema.named:
                having = Filter.by_property(VECTORS).contains_any([names.vector_of(name)])
                both = having if of is None else Filter.all_of([having, of])
                halves[f"vector:{name}"] = set(reading.values(at.chunks, "chunk_id", both))
            return halves

        return self._catalog.on(collection, tenant, act)

    def document_ids(self, collection: str, *, tenant: str = "") -> set[str]:
        return self._catalog.on(
            collection,
            tenant,
            lambda at: {
                *reading.values(at.documents, "doc_id"),
                *reading.values(at.chunks, "doc_id"),
            },
        )

    def count(self, collection: str, where: Where | None = None, *, tenant: str = "") -> int:
        def act(at: Scope) -> int:
            clause = self._catalog.clause(at, where)
            if isinstance(clause, bool):
                return reading.count(at.chunks) if clause else 0
            return reading.count(at.chunks, clause)

        return self._catalog.on(collection, tenant, act)

    def aggregate_group_by(
        self, collection: str, prop: str, where: Where | None = None, *, tenant: str = ""
    ) -> list[tuple[Scalar, int]]:
        self._catalog.fresh(
            collection, tenant
        )  # another process may have added a type of the property

        def act(at: Scope) -> list[tuple[Scalar, int]]:
            clause = self._catalog.clause(at, where)
            if clause is False:
                return []
            filters = None if clause is True else clause
            return reading.groups(at.chunks, prop, at.made.properties, filters)

        return self._catalog.on(collection, tenant, act)

    def deepest_level(self, collection: str, *, tenant: str = "") -> int | None:
        return self._catalog.on(
            collection,
            tenant,
            lambda at: reading.greatest(at.chunks, property_at(NUMBER, "level")),
        )

    def forget(self, collection: str) -> None:
        self._catalog.forget(collection)

    def _best(
        self, at: Scope, where: Where | None, limit: int, ask: retrievers.Ask
    ) -> list[RetrieverHit]:
        clause = self._catalog.clause(at, where)
        if clause is False:
            return []
        return reading.best_of(at.chunks, None if clause is True else clause, limit, ask)


def _of_document(document_id: str) -> FilterReturn:
    item = PropertyTerm(TEXT, "document_id", document_id)
    return Filter.by_property(property_at(TEXT, "document_id")).equal(stored_value(item))
