"""A store of rows that another program owns: it is searched and read, and never written."""

from collections.abc import Collection, Iterable, Sequence

from callslip.errors import CollectionNotFound
from callslip.stores.contract import Store
from callslip.stores.ledger import Attachment, CollectionRecord, Ledger
from callslip.stores.ledger.base.attached import read_only
from callslip.stores.levels import PASSAGE
from callslip.stores.records import (
    BatchOutcome,
    ChunkRecord,
    CollectionSchema,
    DocumentRecord,
)
from callslip.stores.schemas import check_made, check_tenant


class ReadOnlyStore(Store):
    """Every row is a chunk: a passage without a parent, which is a document of its own.

    Each call reads the location of a collection from the ledger. Methods that write raise
    AttachedReadOnly. Dropping a collection does nothing, because another program owns it.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def located(self, collection: str, tenant: str = "") -> tuple[CollectionRecord, Attachment]:
        """The collection and its location. Raises CollectionNotFound."""
        record = self._ledger.collections.get(collection)
        if record.attachment is None or record.store != self.kind:
            raise CollectionNotFound(f"Collection {collection} is not attached.")
        check_tenant(record.schema, tenant)
        return record, record.attachment

    # Collections

    def ensure_schema(self, schema: CollectionSchema) -> None:
        check_made(self.schema(schema.name), schema)

    def schema(self, collection: str) -> CollectionSchema:
        return self.located(collection)[0].schema

    def collections(self) -> list[str]:
        """No collections: Callslip created none in this store."""
        return []

    def drop_collection(self, collection: str) -> None:
        """Leave the rows as they are."""

    def ensure_tenant(self, collection: str, tenant: str) -> None:
        self.located(collection, tenant)

    def drop_tenant(self, collection: str, tenant: str) -> None:
        self.located(collection, tenant)

    def tenants(self, collection: str) -> list[str]:
        self.located(collection)
        return []

    # Writing

    def batch_upsert_documents(
        self, collection: str, documents: Sequence[DocumentRecord], *, tenant: str = ""
    ) -> BatchOutcome:
        raise read_only(collection)

    def batch_upsert_chunks(
        self, collection: str, chunks: Sequence[ChunkRecord], *, tenant: str = ""
    ) -> BatchOutcome:
        raise read_only(collection)

    def delete_chunks(self, collection: str, chunk_ids: Iterable[str], *, tenant: str = "") -> None:
        raise read_only(collection)

    def delete_documents(
        self, collection: str, document_ids: Collection[str], *, tenant: str = ""
    ) -> None:
        raise read_only(collection)

    # Reading

    def terms(
        self, collection: str, chunk_ids: Sequence[str], *, tenant: str = ""
    ) -> dict[str, str]:
        """No terms: Callslip analyzed none of the rows."""
        self.located(collection, tenant)
        return {}

    def get_documents(
        self, collection: str, document_ids: Sequence[str], *, tenant: str = ""
    ) -> list[DocumentRecord]:
        self.located(collection, tenant)
        return []

    def chunk_ids(
        self, collection: str, document_id: str | None = None, *, tenant: str = ""
    ) -> dict[str, set[str]]:
        ids = set(self.find_ids(collection, tenant=tenant))
        if document_id is not None:
            ids &= {document_id}
        return {"vector": ids, "keyword": set(ids)}

    def document_ids(self, collection: str, *, tenant: str = "") -> set[str]:
        return set(self.find_ids(collection, tenant=tenant))

    def deepest_level(self, collection: str, *, tenant: str = "") -> int | None:
        return PASSAGE if self.count(collection, tenant=tenant) else None
