"""A store in memory, for tests of what is built on the stores."""

import math
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any, cast

import numpy as np

from callslip.errors import CollectionNotFound
from callslip.stores.contract import Store, score_chunks
from callslip.stores.metrics import METRICS
from callslip.stores.properties.checks import chunk_fault, document_fault
from callslip.stores.properties.filters import Where, matches
from callslip.stores.records import (
    BatchOutcome,
    ChunkRecord,
    CollectionSchema,
    DocumentRecord,
    RetrieverHit,
    Scalar,
    StoredChunk,
    Vector,
    visible,
)
from callslip.stores.schemas import check_made, check_schema, check_tenant, tenant_missing
from callslip.stores.ties import ranked


class MemoryStore(Store):
    """Everything in dictionaries, and every chunk is scored: nearest vectors and BM25 exactly."""

    kind = "memory"
    indexed = frozenset(METRICS)

    def __init__(self) -> None:
        self._schemas: dict[str, CollectionSchema] = {}
        self._chunks: dict[tuple[str, str], dict[str, ChunkRecord]] = {}
        self._documents: dict[tuple[str, str], dict[str, DocumentRecord]] = {}

    def ping(self) -> None:
        """It answers."""

    def ensure_schema(self, schema: CollectionSchema) -> None:
        check_schema(schema)
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
            for scope in [scope for scope in table if scope[0] == collection]:
                del table[scope]

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
    ) -> list[RetrieverHit]:
        chunks = [_stored(c, True, False) for c in self._matching(collection, where, tenant)]
        metric = self.schema(collection).vector(vector_name).metric
        return ranked(score_chunks(chunks, vector, metric, vector_name))[:limit]

    def keyword_query(
        self,
        collection: str,
        terms: str,
        limit: int,
        where: Where | None = None,
        *,
        tenant: str = "",
    ) -> list[RetrieverHit]:
        counts = {c.chunk_id: Counter(c.terms.split()) for c in self._all(collection, tenant)}
        weights = _weights(Counter(terms.split()), list(counts.values()))
        mean = sum(n.total() for n in counts.values()) / max(len(counts), 1)
        hits = [
            RetrieverHit(chunk.chunk_id, _bm25(weights, counts[chunk.chunk_id], mean))
            for chunk in self._matching(collection, where, tenant)
        ]
        return ranked(hit for hit in hits if hit.score)[: max(limit, 0)]

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
        chunks = [c for c in list(table.values()) if document_id in (None, c.document_id)]
        ids = {c.chunk_id for c in chunks}
        halves = {"vector": ids, "keyword": set(ids)}
        for name in self.schema(collection).named:
            halves[f"vector:{name}"] = {c.chunk_id for c in chunks if name in c.named}
        return halves

    def document_ids(self, collection: str, *, tenant: str = "") -> set[str]:
        at = self._at(collection, tenant)
        return set(self._documents[at]) | {c.document_id for c in list(self._chunks[at].values())}

    def delete_chunks(self, collection: str, chunk_ids: Iterable[str], *, tenant: str = "") -> None:
        table = self._table(collection, tenant)
        for chunk_id in chunk_ids:
            table.pop(chunk_id, None)

    def delete_documents(
        self, collection: str, document_ids: Collection[str], *, tenant: str = ""
    ) -> None:
        for document_id in document_ids:
            ids = self.chunk_ids(collection, document_id, tenant=tenant)["vector"]
            self.delete_chunks(collection, ids, tenant=tenant)
            self._documents[collection, tenant].pop(document_id, None)

    def count(self, collection: str, where: Where | None = None, *, tenant: str = "") -> int:
        return len(self._matching(collection, where, tenant))

    def aggregate_group_by(
        self, collection: str, prop: str, where: Where | None = None, *, tenant: str = ""
    ) -> list[tuple[Scalar, int]]:
        counts: Counter[tuple[str, Scalar]] = Counter()
        for chunk in self._matching(collection, where, tenant):
            value = visible(chunk).get(prop)
            members = value if isinstance(value, list | tuple) else [value]
            counts.update({(_type_name(m), m) for m in members if m is not None})
        groups = [(_whole(value), count) for (_, value), count in counts.items()]
        return sorted(groups, key=lambda group: (-group[1], str(group[0])))

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
        chunks = self._all(collection, tenant)
        return [c for c in chunks if where is None or matches(where, visible(c))]

    def _all(self, collection: str, tenant: str) -> list[ChunkRecord]:
        return list(self._table(collection, tenant).values())


def _stored(chunk: ChunkRecord, include_vector: bool, include_terms: bool) -> StoredChunk:
    fields = {k: v for k, v in chunk.__dict__.items() if k not in ("terms", "vector", "named")}
    fields["properties"] = dict(chunk.properties)
    return StoredChunk(
        **fields,
        vector=np.array(chunk.vector) if include_vector else None,
        named=dict(chunk.named) if include_vector else {},
        terms=chunk.terms if include_terms else None,
    )


def _weights(query: Counter[str], texts: Sequence[Counter[str]]) -> dict[str, float]:
    """The inverse document frequency of each term of the query, as often as the query has it."""
    having = {term: sum(term in text for text in texts) for term in query}
    return {
        term: times * math.log(1 + (len(texts) - having[term] + 0.5) / (having[term] + 0.5))
        for term, times in query.items()
    }


def _bm25(weights: Mapping[str, float], text: Counter[str], mean_length: float) -> float:
    """Okapi BM25 with the parameters of Lucene: k1 = 1.2, b = 0.75."""
    k1, b = 1.2, 0.75
    norm = k1 * (1 - b + b * text.total() / (mean_length or 1))
    return sum(w * text[term] * (k1 + 1) / (text[term] + norm) for term, w in weights.items())


def _type_name(value: Scalar) -> str:
    """Integers and floats are one type: 2 and 2.0 are one value."""
    return "number" if type(value) is int else type(value).__name__.replace("float", "number")


def _whole(value: Scalar) -> Scalar:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _outcome(faults: dict[str, str | None]) -> BatchOutcome:
    return BatchOutcome(
        tuple(i for i, fault in faults.items() if not fault),
        {i: fault for i, fault in faults.items() if fault},
    )


_served: dict[str, MemoryStore] = {}


@contextmanager
def memory_server(address: Path) -> Iterator[Callable[[], Store]]:
    """One store in this process, and what opens it here and, by a socket, in other processes."""
    path = str(address)
    _served[path] = MemoryStore()
    with Listener(path, "AF_UNIX") as listener:
        thread = threading.Thread(target=_accept, args=(listener, _served[path]))
        thread.start()
        yield partial(_open, path)
        del _served[path]  # first, so that the thread ends at the connection
        Client(path, "AF_UNIX").close()
        thread.join()


def _open(path: str) -> Store:
    return _served.get(path) or cast("Store", _Remote(Client(path, "AF_UNIX")))


def _accept(listener: Listener, store: MemoryStore) -> None:
    while True:
        connection = listener.accept()
        if store not in _served.values():
            return connection.close()
        threading.Thread(target=_answer, args=(connection, store)).start()


def _answer(connection: Connection, store: MemoryStore) -> None:
    with connection:
        while True:
            try:
                method, args, options = connection.recv()
            except EOFError:
                return
            try:
                connection.send((getattr(store, method)(*args, **options), None))
            except Exception as error:
                connection.send((None, error))


class _Remote:
    """The methods of a store in another process."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def __getattr__(self, method: str) -> Callable[..., Any]:
        def call(*args: object, **options: object) -> Any:
            self._connection.send((method, args, options))
            result, error = self._connection.recv()
            if error is not None:
                raise error
            return result

        return call

    def close(self) -> None:
        self._connection.close()
