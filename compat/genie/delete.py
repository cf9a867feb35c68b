"""The invokers that delete chunks, files, tenants and collections."""

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, Field

from callslip.callers import Permission
from callslip.compat.errors import validated
from callslip.compat.genie.configuration import checked_parameters, usual
from callslip.compat.genie.documents import filter_names
from callslip.compat.genie.invoker import Invoker, read_object
from callslip.compat.genie.known_names import known_names
from callslip.compat.genie.persist import SCOPE_FIELDS
from callslip.compat.genie.scope import collection_of, scoped_collection
from callslip.errors import CollectionNotFound, Conflict, InvalidFilter, TenantNotFound
from callslip.ingestion import provided_chunks
from callslip.retrieval.messages import Text
from callslip.retrieval.query.filters import check_not_reserved, check_properties_known
from callslip.stores.ledger import CollectionRecord
from callslip.stores.naming import clean_tenant
from callslip.stores.properties.filters import Where, parse

ErrorCode = Literal[
    "InvalidFilterException",
    "NoTenantProvided",
    "NoMultiTenancySupportException",
    "TenantNotFoundException",
    "CollectionNotFoundException",
]


class Deleted(BaseModel):
    """The numbers of chunks that matched, could not be deleted, and were deleted."""

    matches: int
    failed: int
    successful: int


class DeleteMessage(BaseModel):
    """The collection and the tenant of a deletion."""

    collection_name: str | None = None
    tenant_name: str | None = None


class CollectionDeleted(BaseModel):
    """The collection that was deleted."""

    collection_name: str


class DeleteError(DeleteMessage):
    """The reason why nothing was deleted, in the format of the published package."""

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
    """Deletes in the collection and the tenant that the request or the configuration names."""

    permission: ClassVar[Permission] = "write"

    def _request(self, content: str, *fields: str) -> dict[str, Any]:
        configured = usual(self._parameters, SCOPE_FIELDS)
        return {**configured, **checked_parameters(read_object(content), (*SCOPE_FIELDS, *fields))}


class _ChunksInvoker(DeleteInvoker):
    fields: tuple[str, ...] = ()

    def answer(self, content: str) -> Deleted | DeleteError:
        """Delete the chunks; a document that loses all its chunks is deleted too."""
        request = self._request(content, *self.fields)
        collection = scoped_collection(
            self._context, request.get("collection"), request.get("tenant")
        )
        tenant = clean_tenant(request.get("tenant") or "")
        scope = provided_chunks.ChunkScope(
            self._context.backend, collection.store, collection.name, tenant
        )
        return self._delete(scope, collection, request)

    @abstractmethod
    def _delete(
        self,
        scope: provided_chunks.ChunkScope,
        collection: CollectionRecord,
        request: dict[str, Any],
    ) -> Deleted | DeleteError: ...

    def _where(self, scope: provided_chunks.ChunkScope, where: Where | None) -> Deleted:
        return self._chunks(
            scope, scope.store.find_ids(scope.collection, where, tenant=scope.tenant)
        )

    def _chunks(self, scope: provided_chunks.ChunkScope, chunk_ids: Iterable[str]) -> Deleted:
        ledger, failed = scope.ledger, 0
        owners = ledger.chunks.visible(
            sorted(set(chunk_ids)), collection=scope.collection, tenant=scope.tenant
        )
        of_document: defaultdict[str, set[str]] = defaultdict(set)
        for chunk_id, document_id in owners.items():
            of_document[document_id].add(chunk_id)
        for document_id, ids in of_document.items():
            whole = ids >= ledger.chunks.live_ids(document_id)
            try:
                if not whole or provided_chunks.has_provided_chunks(ledger, document_id):
                    provided_chunks.take_out(scope, document_id, ids)
            except Conflict:  # made from a file, which can only be deleted as a whole
                failed += len(ids)
                continue
            if whole:
                ledger.documents.delete(document_id)
                self._context.removed(document_id)
        return Deleted(matches=len(owners), failed=failed, successful=len(owners) - failed)


class WeaviateDeleteChunkInvoker(_ChunksInvoker):
    """Deletes one or several chunks by id."""

    fields = ("chunk_id",)

    def _delete(
        self,
        scope: provided_chunks.ChunkScope,
        collection: CollectionRecord,
        request: dict[str, Any],
    ) -> Deleted:
        wanted = validated(_Ids, request).chunk_id
        return self._chunks(scope, [wanted] if isinstance(wanted, str) else wanted)


class WeaviateDeleteByFilenameInvoker(_ChunksInvoker):
    """Deletes all chunks of the files with one name."""

    fields = ("filename",)

    def _delete(
        self,
        scope: provided_chunks.ChunkScope,
        collection: CollectionRecord,
        request: dict[str, Any],
    ) -> Deleted:
        return self._where(scope, parse({"filename": validated(_Name, request).filename}, None))


class WeaviateDeleteByFilterInvoker(_ChunksInvoker):
    """Deletes the chunks that match a filter, which must not be empty."""

    fields = ("having_all", "having_any")

    def _delete(
        self,
        scope: provided_chunks.ChunkScope,
        collection: CollectionRecord,
        request: dict[str, Any],
    ) -> Deleted | DeleteError:
        wanted = validated(_Filter, request)
        known = scope.ledger.collections.property_names(collection.name)
        names = known_names(scope, known)
        groups = (filter_names(g, names) for g in (wanted.having_all, wanted.having_any))
        try:
            where = parse(*groups)
            check_not_reserved(where)
            if scope.ledger.reader is None:
                check_properties_known(where, known)
            if where is None:
                raise InvalidFilter("Invalid or empty filter")
        except InvalidFilter as error:
            return DeleteError(
                collection_name=collection.name,
                tenant_name=scope.tenant or None,
                error_code="InvalidFilterException",
                error=error.detail,
            )
        return self._where(scope, where)


class WeaviateDeleteTenantInvoker(DeleteInvoker):
    """Deletes a tenant with all its documents."""

    permission: ClassVar[Permission] = "admin"

    def answer(self, content: str) -> DeleteMessage:
        """Delete the tenant; return it, or the reason why it was not deleted."""
        request = self._request(content)
        name = request.get("collection")
        try:
            collection = collection_of(self._context, name)
        except CollectionNotFound as error:
            return _missing_collection(name, error)
        tenant = clean_tenant(validated(_Tenant, request).tenant or "")
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
            self._context.caller.check(collection.name, tenant)
            for document_id in self._context.ledger.tenants.delete(collection.name, tenant):
                self._context.removed(document_id)
        except TenantNotFound:
            return DeleteError(
                **message.model_dump(),
                error_code="TenantNotFoundException",
                error="This tenant does not exist in this collection",
                status=404,
            )
        return message


class WeaviateDeleteCollectionInvoker(DeleteInvoker):
    """Deletes a collection with all its documents and tenants."""

    permission: ClassVar[Permission] = "admin"

    def answer(self, content: str) -> CollectionDeleted | DeleteError:
        """Delete the collection; return it, or the reason why it was not deleted."""
        name = self._request(content).get("collection")
        try:
            collection = collection_of(self._context, name)
            self._context.caller.check_whole(collection.name)
            self._context.ledger.collections.delete(collection.name)
        except CollectionNotFound as error:
            return _missing_collection(name, error)
        self._context.dropped(collection.name)
        return CollectionDeleted(collection_name=collection.name)


class _Tenant(BaseModel):
    tenant: Text | None = None


def _missing_collection(collection: Any, error: CollectionNotFound) -> DeleteError:
    return DeleteError(
        collection_name=collection,
        error_code="CollectionNotFoundException",
        error=error.detail,
        status=error.status,
    )
