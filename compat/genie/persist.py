"""The invokers that make a tenant and store documents whose chunks are made already."""

import uuid
from collections.abc import Sequence
from typing import Any

import numpy as np
from pydantic import BaseModel, Field

from callslip.errors import InvalidRequest
from compat.genie.configured import renamed, told, usual
from compat.genie.documents import ChunkedDocument, DocumentChunk, properties_of
from compat.genie.floor import Floor
from compat.genie.invoker import Invoker, read_object
from compat.genie.places import collection_of, place
from compat.raising import validated
from ingestion import given
from stores.ledger import CollectionRecord
from stores.naming import clean_name, clean_tenant
from stores.properties import check_properties
from stores.records import ChunkRecord, Vector

NAMESPACE = uuid.UUID("e3bf4d4c-068e-11f0-aa96-000d3a0b8a34")
"""Of the published package: the id of a chunk that has none is made of its text."""

PLACE = ("collection", "tenant")

CONFIGURED = (*PLACE, "batch_size")


class PersistRequest(BaseModel):
    """Documents, and where they go."""

    collection: str
    tenant: str | None = None
    document: ChunkedDocument | list[ChunkedDocument]
    batch_size: int = Field(1000, ge=1, le=10_000)


class PersistResponse(BaseModel):
    """What was written where."""

    collection_name: str
    tenant_name: str | None
    nr_inserts: int
    nr_replaces: int


class WeaviatePersistInvoker(Invoker):
    """Stores one document, or a list of them, with the ids, levels and vectors of their chunks."""

    def answer(self, content: str) -> PersistResponse:
        """How many chunks are new, and how many were replaced."""
        configured = usual(self._parameters, CONFIGURED)
        asked = told(read_object(content), (*CONFIGURED, "document"))
        wanted = {**configured, **asked}
        collection = place(self._floor, wanted.get("collection"), wanted.get("tenant"))
        request = validated(PersistRequest, _with_ids(wanted))
        documents = request.document if isinstance(request.document, list) else [request.document]
        tenant = clean_tenant(request.tenant or "")
        store = self._floor.store_of(collection.store)
        shelf = given.Shelf(self._floor.ledger, store, collection.name, self._floor.blobs, tenant)
        inserted = replaced = 0
        for document in documents:
            name = clean_name(document.filename)
            vectors = _vectors(self._floor, collection, document.chunks)
            records = [
                _record(self._floor, document, chunk, name, vector, at)
                for at, (chunk, vector) in enumerate(zip(document.chunks, vectors, strict=True))
            ]
            written = given.put(shelf, name, records, request.batch_size)
            inserted, replaced = inserted + written.inserted, replaced + written.replaced
        return PersistResponse(
            collection_name=collection.name,
            tenant_name=tenant or None,
            nr_inserts=inserted,
            nr_replaces=replaced,
        )


class WeaviateCreateTenantInvoker(Invoker):
    """Makes a tenant; one that is there already is left as it is."""

    def answer(self, content: str) -> dict[str, Any]:
        """The collection as it is described by the published package."""
        wanted = {**usual(self._parameters, CONFIGURED), **told(read_object(content), PLACE)}
        collection = collection_of(self._floor, wanted.get("collection"))
        tenant = wanted.get("tenant")
        if not isinstance(tenant, str) or not clean_tenant(tenant):
            raise InvalidRequest("tenant is missing")
        if not collection.schema.tenants:
            raise InvalidRequest(f"Collection {collection.name} has no tenants")
        name, store = clean_tenant(tenant), self._floor.store_of(collection.store)
        store.check_names(collection.name, name)
        self._floor.ledger.tenants.create(collection.name, name)
        store.ensure_tenant(collection.name, name)
        properties = self._floor.ledger.collections.property_names(collection.name)
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


def _with_ids(wanted: dict[str, Any]) -> dict[str, Any]:
    """The request with an id for each chunk that has none."""
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
    floor: Floor, collection: CollectionRecord, chunks: Sequence[DocumentChunk]
) -> list[Vector]:
    """Those that are given, of length 1 where the collection's are, and the others made now."""
    bare = [c.content for c in chunks if not c.embedding]
    if bare and floor.embedder().model != collection.embedder:
        raise InvalidRequest(
            f"collection {collection.name!r} was embedded with {collection.embedder!r},"
            f" this installation runs {floor.embedder().model!r}",
            hint="Give each chunk its embedding.",
        )
    made = iter(floor.embedder().passages(bare) if bare else ())
    found = [np.asarray(c.embedding, np.float32) if c.embedding else next(made) for c in chunks]
    return [_unit(v) for v in found] if collection.schema.default.normalized else found


def _unit(vector: Vector) -> Vector:
    length = float(np.linalg.norm(vector.astype(np.float64)))
    return np.asarray(vector / length, np.float32) if 0 < length < np.inf else vector


def _record(
    floor: Floor,
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
        terms=floor.analyze(chunk.content),
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
