"""The invokers that make a tenant and store documents with provided chunks."""

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from pydantic import BaseModel, Field

from callslip.compat.context import AdapterContext
from callslip.compat.errors import validated
from callslip.compat.genie.configuration import checked_parameters, renamed, usual
from callslip.compat.genie.documents import ChunkedDocument, DocumentChunk, properties_of
from callslip.compat.genie.invoker import Invoker, read_object
from callslip.compat.genie.scope import collection_of, scoped_collection
from callslip.errors import Conflict, InvalidRequest, PermanentError
from callslip.ingestion import provided_chunks
from callslip.stores.ledger import CollectionRecord
from callslip.stores.naming import clean_name, clean_tenant
from callslip.stores.properties.values import check_properties
from callslip.stores.records import ChunkRecord, Vector
from callslip.vocabulary import DEFAULT_VECTOR

NAMESPACE = uuid.UUID("e3bf4d4c-068e-11f0-aa96-000d3a0b8a34")
"""The published package's UUID namespace, for the id of a chunk that has none.

The id is the UUID (version 5) of the chunk's text.
"""

SCOPE_FIELDS = ("collection", "tenant")

CONFIGURED = (*SCOPE_FIELDS, "batch_size")


class PersistRequest(BaseModel):
    """Documents, and the collection and tenant to store them in."""

    collection: str
    tenant: str | None = None
    document: ChunkedDocument | list[ChunkedDocument]
    batch_size: int = Field(1000, ge=1, le=10_000)


class PersistResponse(BaseModel):
    """The scope of the documents, and the numbers of inserted and replaced chunks."""

    collection_name: str
    tenant_name: str | None
    nr_inserts: int
    nr_replaces: int


class WeaviatePersistInvoker(Invoker):
    """Stores one document, or a list of them, with the ids, levels and vectors of their chunks."""

    permission = "write"

    def scope(self, content: str) -> tuple[dict[str, Any], CollectionRecord]:
        """The fields of a request, and its collection; errors as for `scoped_collection`."""
        configured = usual(self._parameters, CONFIGURED)
        fields = checked_parameters(read_object(content), (*CONFIGURED, "document"))
        wanted = {**configured, **fields}
        return wanted, scoped_collection(
            self._context, wanted.get("collection"), wanted.get("tenant")
        )

    def answer(self, content: str) -> PersistResponse:
        """Store the documents; return the numbers of new and of replaced chunks.

        All are checked before the first one is stored.
        """
        wanted, collection = self.scope(content)
        request = validated(PersistRequest, _with_ids(wanted))
        documents = request.document if isinstance(request.document, list) else [request.document]
        tenant = clean_tenant(request.tenant or "")
        scope = provided_chunks.ChunkScope(
            self._context.backend, collection.store, collection.name, tenant
        )
        checked: list[tuple[str, list[ChunkRecord]]] = []
        names: dict[str, str] = {}
        for document in documents:
            with _naming(document.filename):
                name = clean_name(document.filename)
                records = self._records(collection, document, name)
                provided_chunks.check(scope, name, records)
                for chunk in records:
                    if names.setdefault(chunk.chunk_id, name) != name:
                        raise Conflict(f"chunk {chunk.chunk_id!r} is another document's, too")
            checked.append((name, records))
        written = []
        for name, records in checked:
            with _naming(name):
                written.append(provided_chunks.put(scope, name, records, request.batch_size))
        return PersistResponse(
            collection_name=collection.name,
            tenant_name=tenant or None,
            nr_inserts=sum(each.inserted for each in written),
            nr_replaces=sum(each.replaced for each in written),
        )

    def _records(
        self, collection: CollectionRecord, document: ChunkedDocument, name: str
    ) -> list[ChunkRecord]:
        vectors = _vectors(self._context, collection, document.chunks)
        records = [
            replace(
                _record(self._context, collection, document, chunk, name, vector, at),
                named=_named(collection, chunk),
            )
            for at, (chunk, vector) in enumerate(zip(document.chunks, vectors, strict=True))
        ]
        return self._context.with_named(collection, records)


class WeaviateCreateTenantInvoker(Invoker):
    """Makes a tenant; an existing one stays as it is."""

    permission = "write"

    def answer(self, content: str) -> dict[str, Any]:
        """Make the tenant; return the collection as the published package describes it."""
        wanted = {
            **usual(self._parameters, CONFIGURED),
            **checked_parameters(read_object(content), SCOPE_FIELDS),
        }
        collection = collection_of(self._context, wanted.get("collection"))
        tenant = wanted.get("tenant")
        if not isinstance(tenant, str) or not clean_tenant(tenant):
            raise InvalidRequest("tenant is missing")
        if not collection.schema.tenants:
            raise InvalidRequest(f"Collection {collection.name} has no tenants")
        self._context.caller.check(collection.name, clean_tenant(tenant))
        name, store = clean_tenant(tenant), self._context.store_of(collection.store)
        store.check_names(collection.name, name)
        self._context.ledger.tenants.create(collection.name, name)
        store.ensure_tenant(collection.name, name)
        ledger, properties = self._context.ledger, set[str]()
        if ledger.reader is None and not self._context.caller.limited:  # else they are of others
            properties = ledger.collections.property_names(collection.name)
        return {
            "collection_name": collection.name,
            "description": None,
            "multi_tenancy": {
                "enabled": True,
                "auto_tenant_creation": True,
                "auto_tenant_activation": True,
            },
            "properties": dict.fromkeys(sorted(properties), "any"),
        }


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Add the name of a document to an error that the request is at fault for."""
    try:
        yield
    except PermanentError as error:
        detail = f"document {name!r}: {error.detail}"
        raise type(error)(detail, hint=error.advice) from error


def _with_ids(wanted: dict[str, Any]) -> dict[str, Any]:
    """Return the request with an id for each chunk that has none; changes the chunks in place."""
    documents = wanted.get("document")
    for document in documents if isinstance(documents, list) else [documents]:
        chunks = document.get("chunks") if isinstance(document, dict) else None
        for chunk in chunks if isinstance(chunks, list) else ():
            if isinstance(chunk, dict) and chunk.get("chunk_id") is None:
                content = chunk.get("content")
                if isinstance(content, str):
                    text = content.encode("utf-8", "replace").decode()
                    chunk["chunk_id"] = str(uuid.uuid5(NAMESPACE, text))
    return renamed(wanted)


def _vectors(
    context: AdapterContext, collection: CollectionRecord, chunks: Sequence[DocumentChunk]
) -> list[Vector]:
    """Return the provided vectors, and new ones for chunks without a vector.

    The vectors are scaled to length 1 if the collection's are normalized.
    """
    provided = [c.embedding or (c.embeddings or {}).get(DEFAULT_VECTOR) for c in chunks]
    without_vector = [c.content for c, e in zip(chunks, provided, strict=True) if not e]
    if without_vector and context.embedder().model != collection.embedder:
        raise InvalidRequest(
            f"collection {collection.name!r} was embedded with {collection.embedder!r},"
            f" this installation runs {context.embedder().model!r}",
            hint="Give each chunk its embedding.",
        )
    made = iter(context.embedder().passages(without_vector) if without_vector else ())
    vectors = [np.asarray(e, np.float32) if e else next(made) for e in provided]
    return [_unit(v) for v in vectors] if collection.schema.default.normalized else vectors


def _named(collection: CollectionRecord, chunk: DocumentChunk) -> dict[str, Vector]:
    """Return the provided named vectors of a chunk. Raises VectorNotFound for an unknown name."""
    named = {}
    for name, embedding in (chunk.embeddings or {}).items():
        if name == DEFAULT_VECTOR and name not in collection.schema.named:
            continue
        vector = np.asarray(embedding, np.float32)
        named[name] = _unit(vector) if collection.schema.vector(name).normalized else vector
    return named


def _unit(vector: Vector) -> Vector:
    length = float(np.linalg.norm(vector.astype(np.float64)))
    return np.asarray(vector / length, np.float32) if 0 < length < np.inf else vector


def _record(
    context: AdapterContext,
    collection: CollectionRecord,
    document: ChunkedDocument,
    chunk: DocumentChunk,
    name: str,
    vector: Vector,
    ordinal: int,
) -> ChunkRecord:
    start, end = chunk.original_span
    return ChunkRecord(
        chunk_id=chunk.chunk_id,
        document_id="",
        body=chunk.content,
        terms=context.analyze(collection, chunk.content),
        vector=vector,
        parent_id=chunk.parent_id or "",
        title=name,
        filename=name,
        level=chunk.hierarchy_level,
        ordinal=ordinal,
        start=start,
        end=end,
        properties=check_properties(properties_of(document, chunk), reserved=()),
    )
