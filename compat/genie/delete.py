"""The invokers that delete chunks, files, tenants and collections."""

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Literal

from pydantic import BaseModel, Field

from callslip.errors import (
    CollectionNotFound,
    Conflict,
    InvalidFilter,
    TenantNotFound,
)
from compat.genie.configured import told, usual
from compat.genie.documents import filter_names
from compat.genie.invoker import Invoker, read_object
from compat.genie.persist import PLACE
from compat.genie.places import collection_of, place
from compat.raising import validated
from ingestion import given
from retrieval.messages import Text
from retrieval.narrowing import check_properties_known
from stores.filters import Where, parse
from stores.ledger import CollectionRecord
from stores.naming import clean_tenant

ErrorCode = Literal[
    "InvalidFilterException",
    "NoTenantProvided",
    "NoMultiTenancySupportException",
    "TenantNotFoundException",
    "CollectionNotFoundException",
]


class Deleted(BaseModel):
    """How many chunks were meant, could not be deleted, and were deleted."""

    matches: int
    failed: int
    successful: int


class DeleteMessage(BaseModel):
    """What was deleted."""

    collection_name: str | None = None
    tenant_name: str | None = None


class CollectionDeleted(BaseModel):
    """The collection that was deleted."""

    collection_name: str


class DeleteError(DeleteMessage):
    """Why nothing was deleted, as the published package answers it."""

    error_code: ErrorCode
    error: str
    status: int = Field(default=400, exclude=True, description="over HTTP")


class _Ids(BaseModel):
    chunk_id: Text | list[Text]


class _Name(BaseModel):
    filename: Text


class _Filter(BaseModel):
    having_all: dict[str, Any] | None = None
    having_any: dict[str, Any] | None = None


class DeleteInvoker(Invoker):
    """Deletes within the collection, and the tenant, of the configuration or the request."""

    def _asked(self, content: str, *fields: str) -> dict[str, Any]:
        configured = usual(self._parameters, PLACE)
        return {**configured, **told(read_object(content), (*PLACE, *fields))}


class _ChunksInvoker(DeleteInvoker):
    fields: tuple[str, ...] = ()

    def answer(self, content: str) -> Deleted | DeleteError:
        """How many chunks went; a document whose chunks all go is deleted."""
        asked = self._asked(content, *self.fields)
        collection = place(self._floor, asked.get("collection"), asked.get("tenant"))
        tenant = clean_tenant(asked.get("tenant") or "")
        store = self._floor.store_of(collection.store)
        shelf = given.Shelf(self._floor.ledger, store, collection.name, self._floor.blobs, tenant)
        return self._delete(shelf, collection, asked)

    @abstractmethod
    def _delete(
        self, shelf: given.Shelf, collection: CollectionRecord, asked: dict[str, Any]
    ) -> Deleted | DeleteError: ...

    def _where(self, shelf: given.Shelf, where: Where | None) -> Deleted:
        return self._chunks(
            shelf, shelf.store.find_ids(shelf.collection, where, tenant=shelf.tenant)
        )

    def _chunks(self, shelf: given.Shelf, chunk_ids: Iterable[str]) -> Deleted:
        ledger, failed = shelf.ledger, 0
        owners = ledger.chunks.visible(
            sorted(set(chunk_ids)), collection=shelf.collection, tenant=shelf.tenant
        )
        of_document: defaultdict[str, set[str]] = defaultdict(set)
        for chunk_id, document_id in owners.items():
            of_document[document_id].add(chunk_id)
        for document_id, ids in of_document.items():
            whole = ids >= ledger.chunks.live_ids(document_id)
            try:
                if not whole or given.is_given(ledger, document_id):
                    given.take_out(shelf, document_id, ids)
            except Conflict:  # made from a file, of which no part can go
                failed += len(ids)
                continue
            if whole:
                ledger.documents.delete(document_id)
                self._floor.removed(document_id)
        return Deleted(matches=len(owners), failed=failed, successful=len(owners) - failed)


class WeaviateDeleteChunkInvoker(_ChunksInvoker):
    """Deletes a chunk, or several, by id."""

    fields = ("chunk_id",)

    def _delete(
        self, shelf: given.Shelf, collection: CollectionRecord, asked: dict[str, Any]
    ) -> Deleted:
        wanted = validated(_Ids, asked).chunk_id
        return self._chunks(shelf, [wanted] if isinstance(wanted, str) else wanted)


class WeaviateDeleteByFilenameInvoker(_ChunksInvoker):
    """Deletes all chunks of the files of a name."""

    fields = ("filename",)

    def _delete(
        self, shelf: given.Shelf, collection: CollectionRecord, asked: dict[str, Any]
    ) -> Deleted:
        return self._where(shelf, parse({"filename": validated(_Name, asked).filename}, None))


class WeaviateDeleteByFilterInvoker(_ChunksInvoker):
    """Deletes the chunks that a filter finds; it must say something."""

    fields = ("having_all", "having_any")

    def _delete(
        self, shelf: given.Shelf, collection: CollectionRecord, asked: dict[str, Any]
    ) -> Deleted | DeleteError:
        wanted = validated(_Filter, asked)
        known = shelf.ledger.collections.property_names(collection.name)
        groups = (filter_names(g, known) for g in (wanted.having_all, wanted.having_any))
        try:
            where = parse(*groups)
            check_properties_known(where, known)
            if where is None:
                raise InvalidFilter("Invalid or empty filter")
        except InvalidFilter as error:
            return DeleteError(
                collection_name=collection.name,
                tenant_name=shelf.tenant or None,
                error_code="InvalidFilterException",
                error=error.detail,
            )
        return self._where(shelf, where)


class WeaviateDeleteTenantInvoker(DeleteInvoker):
    """Deletes a tenant with all that it holds."""

    def answer(self, content: str) -> DeleteMessage:
        """The tenant that went, or why none did."""
        asked = self._asked(content)
        name = asked.get("collection")
        try:
            collection = collection_of(self._floor, name)
        except CollectionNotFound as error:
            return _not_found(name, error)
        tenant = clean_tenant(validated(_Tenant, asked).tenant or "")
        if not tenant:
            why = "Trying to delete tenant but no tenant name provided"
            return DeleteError(collection_name=name, error_code="NoTenantProvided", error=why)
        message = DeleteMessage(collection_name=name, tenant_name=tenant)
        if not collection.schema.tenants:
            return DeleteError(
                **message.model_dump(),
                error_code="NoMultiTenancySupportException",
                error="This collection does not support multi-tenancy",
            )
        try:
            for document_id in self._floor.ledger.tenants.delete(collection.name, tenant):
                self._floor.removed(document_id)
        except TenantNotFound:
            return DeleteError(
                **message.model_dump(),
                error_code="TenantNotFoundException",
                error="This tenant does not exist in this collection",
                status=404,
            )
        return message


class WeaviateDeleteCollectionInvoker(DeleteInvoker):
    """Deletes a collection with all that it holds."""

    def answer(self, content: str) -> CollectionDeleted | DeleteError:
        """The collection that went, or why none did."""
        name = self._asked(content).get("collection")
        try:
            collection = collection_of(self._floor, name)
            self._floor.ledger.collections.delete(collection.name)
        except CollectionNotFound as error:
            return _not_found(name, error)
        self._floor.dropped(collection.name)
        return CollectionDeleted(collection_name=collection.name)


class _Tenant(BaseModel):
    tenant: Text | None = None


def _not_found(collection: Any, error: CollectionNotFound) -> DeleteError:
    return DeleteError(
        collection_name=collection,
        error_code="CollectionNotFoundException",
        error=error.detail,
        status=error.status,
    )
