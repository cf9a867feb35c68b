"""The operations of a store that each implementation provides.

`stores.contract.Store` adds the queries that are computed from these operations in the same way for
every store.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from typing import ClassVar, Literal

from callslip.stores.batching import BatchSize
from callslip.stores.metrics import Metric
from callslip.stores.properties.filters import Where
from callslip.stores.records import (
    BatchOutcome,
    ChunkRecord,
    CollectionSchema,
    DocumentRecord,
    RetrieverHit,
    Scalar,
    StoredChunk,
    Vector,
)
from callslip.stores.servers.absence import LISTINGS, confirmed


class StoreOperations(ABC):
    """The primitive operations of a store. Make one client per process, after the fork.

    A method raises StoreDown if the store does not answer its request. A method with the argument
    `collection` raises CollectionNotFound if the collection does not exist, with these exceptions:
    `drop_collection` is idempotent, and `check_names`, `property_names` and `forget` need not check
    whether the collection exists. In a collection with tenants, every method that reads or writes
    chunks or documents needs `tenant`: it raises InvalidRequest without one and TenantNotFound for
    an unknown one. In a collection without tenants, a tenant is an InvalidRequest. Ties in scores
    are broken by chunk id, ascending.

    Absence is believed only from a server that is ready (`stores.servers.absence`): before a method
    raises NotFound, it asks the server whether it is ready, and then once more for the object. This
    class does the same for empty results of LISTINGS.
    """

    def __init_subclass__(cls, **named: object) -> None:
        super().__init_subclass__(**named)
        for name in LISTINGS & vars(cls).keys():
            setattr(cls, name, confirmed(name, vars(cls)[name]))

    kind: ClassVar[str]

    indexed: ClassVar[frozenset[Metric]]
    """The metrics that `nearest` supports if the schema names them."""

    keyword_score: ClassVar[Literal["bm25", "tfidf"]] = "bm25"
    """The score of the keyword retriever.

    Tfidf is the cosine over words and pairs of adjacent words.
    """

    local_keywords: ClassVar[bool] = False
    """Whether the keyword retriever and `copies` need no server, or another than the vectors."""

    @cached_property
    def batch_size(self) -> BatchSize:
        """The number of chunks that callers write at once; it tunes itself to the server."""
        return BatchSize()

    # Collections

    @abstractmethod
    def ping(self) -> None:
        """Raise StoreDown unless the store answers."""

    def probe(self) -> None:
        """Write an object of no collection and read it back. Raises StoreDown if that fails.

        A store without such an object only responds to a ping.
        """
        self.ping()

    @abstractmethod
    def ensure_schema(self, schema: CollectionSchema) -> None:
        """Create the collection if it is missing. Idempotent.

        Raises Conflict if the collection exists with another schema.
        """

    @abstractmethod
    def schema(self, collection: str) -> CollectionSchema:
        """The schema with which the collection was created."""

    @abstractmethod
    def collections(self) -> list[str]:
        """The names of all collections that Callslip created in this store, sorted."""

    @abstractmethod
    def drop_collection(self, collection: str) -> None:
        """Delete the collection and all its data. Idempotent."""

    def check_names(self, collection: str, tenant: str = "") -> None:  # noqa: B027 - most allow any
        """Raise InvalidRequest if the store cannot use this name for a collection or tenant."""

    @abstractmethod
    def ensure_tenant(self, collection: str, tenant: str) -> None:
        """Create the tenant if it is missing.

        Raises InvalidRequest if the collection has no tenants.
        """

    @abstractmethod
    def drop_tenant(self, collection: str, tenant: str) -> None:
        """Delete the tenant and all its data. Idempotent."""

    @abstractmethod
    def tenants(self, collection: str) -> list[str]:
        """The names of the collection's tenants, sorted; empty if the collection has no tenants."""

    # Writing

    @abstractmethod
    def batch_upsert_documents(
        self, collection: str, documents: Sequence[DocumentRecord], *, tenant: str = ""
    ) -> BatchOutcome:
        """Write documents. A document with an existing id replaces the stored one."""

    @abstractmethod
    def batch_upsert_chunks(
        self, collection: str, chunks: Sequence[ChunkRecord], *, tenant: str = ""
    ) -> BatchOutcome:
        """Write chunks. A chunk with an existing id replaces the stored one.

        The next call finds every chunk that is reported as stored. An invalid object fails alone
        and is named in the outcome: a vector with NaN or of another dimension, an empty id, a
        property of an unknown type (`stores.properties.checks` has the rules). Raises
        BatchInterrupted if the store becomes unavailable during the batch.
        """

    @abstractmethod
    def delete_chunks(self, collection: str, chunk_ids: Iterable[str], *, tenant: str = "") -> None:
        """Delete chunks from the vector index and from the keyword index. Ignores unknown ids."""

    @abstractmethod
    def delete_documents(
        self, collection: str, document_ids: Collection[str], *, tenant: str = ""
    ) -> None:
        """Delete documents and all their chunks. Idempotent."""

    # Retrievers

    @abstractmethod
    def build_where(self, where: Where) -> object:
        """Translate a filter into the store's query language. Raises InvalidFilter if it cannot."""

    @abstractmethod
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
        """The nearest chunks by the metric of the vector index, best first.

        `vector` has shape (dimension,) and fits the schema, and `indexed` contains the metric of
        the schema: `vector_query` checks both before the call.
        """

    @abstractmethod
    def keyword_query(
        self,
        collection: str,
        terms: str,
        limit: int,
        where: Where | None = None,
        *,
        tenant: str = "",
    ) -> list[RetrieverHit]:
        """The best chunks by `keyword_score` over analyzed terms, best first.

        Each has a term of the query.
        """

    # Reading

    @abstractmethod
    def get_chunks(
        self,
        collection: str,
        chunk_ids: Sequence[str],
        *,
        tenant: str = "",
        include_vector: bool = False,
        include_terms: bool = False,
    ) -> list[StoredChunk]:
        """The chunks with these ids, in this order. Ignores unknown ids.

        Vectors have the values that were written, to the precision of 32 bits.
        """

    def copies(
        self, collection: str, chunk_ids: Sequence[str], *, tenant: str = ""
    ) -> list[StoredChunk]:
        """As `get_chunks`, without vectors, from copies that can be read while the server is down.

        Chunks without a copy are left out. Only a store with `local_keywords` has copies.
        """
        return []

    @abstractmethod
    def terms(
        self, collection: str, chunk_ids: Sequence[str], *, tenant: str = ""
    ) -> dict[str, str]:
        """The analyzed terms of these chunks, by chunk id. Ignores unknown ids.

        Reads neither texts nor vectors: a search calls it for the chunks that it ranks.
        """

    @abstractmethod
    def get_documents(
        self, collection: str, document_ids: Sequence[str], *, tenant: str = ""
    ) -> list[DocumentRecord]:
        """The documents with these ids, in this order. Ignores unknown ids."""

    @abstractmethod
    def find_ids(
        self, collection: str, where: Where | None = None, *, tenant: str = ""
    ) -> list[str]:
        """The ids of all chunks that match the filter, ascending."""

    @abstractmethod
    def chunk_ids(
        self, collection: str, document_id: str | None = None, *, tenant: str = ""
    ) -> dict[str, set[str]]:
        """The chunk ids of a document, or of all documents, in each index; for counts and audits.

        The keys are `vector`, `keyword`, and `vector:NAME` for named vectors, which contain only
        the chunks that have such a vector. A store that stores a chunk as one object returns the
        same set for `vector` and `keyword`.
        """

    def chunk_ids_of(
        self, collection: str, document_ids: Collection[str], *, tenant: str = ""
    ) -> dict[str, dict[str, set[str]]]:
        """The result of `chunk_ids` for each of these documents, by document id.

        A store whose server takes long for each call overrides it to read the documents together.
        """
        return {i: self.chunk_ids(collection, i, tenant=tenant) for i in document_ids}

    @abstractmethod
    def document_ids(self, collection: str, *, tenant: str = "") -> set[str]:
        """The ids of all documents that have a record, or a chunk in any index."""

    @abstractmethod
    def count(self, collection: str, where: Where | None = None, *, tenant: str = "") -> int:
        """The number of chunks that match the filter."""

    @abstractmethod
    def aggregate_group_by(
        self, collection: str, prop: str, where: Where | None = None, *, tenant: str = ""
    ) -> list[tuple[Scalar, int]]:
        """The number of chunks by value of a property, most frequent first, then by value.

        A chunk with a list is counted once for each value of the list. Dates have the spelling that
        was written.
        """

    def property_names(self, collection: str) -> set[str] | None:
        """The names of properties if only the store knows them; None if the ledger records them."""
        return None

    # Maintenance

    def forget(self, collection: str) -> None:  # noqa: B027 - most stores cache nothing
        """Discard cached data of the collection: another process may have created it again."""

    def maintain(self) -> None:  # noqa: B027 - most stores need no maintenance
        """Do periodic work. The maintenance worker calls it repeatedly."""

    def compact(self, collection: str, *, tenant: str = "") -> None:  # noqa: B027 - see below
        """Rewrite files of ours, so that nothing of deleted objects remains in them.

        The caller lets nothing write meanwhile. A server that merges its files by itself does
        nothing here.
        """

    @abstractmethod
    def close(self) -> None:
        """Close connections. The store must not be used afterwards."""
