"""`VectorSearch`, the interface that existing programs use to search Chroma."""

from collections.abc import Iterator, Sequence
from typing import Any

from callslip.compat.context import AdapterContext, local
from callslip.compat.errors import as_builtin, validated
from callslip.compat.faq.collections import made, names_of
from callslip.compat.faq.compare import VECTOR_SEARCH, Comparison, Question, compare, identity
from callslip.compat.faq.entries import BATCH, row_order
from callslip.stores.ledger import CollectionRecord
from callslip.stores.levels import PASSAGES
from callslip.stores.properties.filters import Where
from callslip.stores.records import StoredChunk, public


class VectorSearch:
    """Searches one or several collections with the same query. Threads may share an instance.

    All methods raise ValueError for an invalid request, KeyError for a collection that was deleted
    meanwhile, and a TransientError of `callslip.errors` if a retry may succeed.
    """

    def __init__(
        self,
        collection_name: str | Sequence[str] | None = None,
        *,
        context: AdapterContext | None = None,
    ) -> None:
        """Open these collections, or the one in the settings, and make the missing ones.

        New collections use the cosine metric. `context` answers the searches; the default is a
        context in this process (`callslip.compat.context.local`).
        """
        with as_builtin():
            self._context = context or local()
            default = self._context.settings.faq.collection
            self.collection_names = names_of(collection_name, default)
            made(self._context, self.collection_names)

    def search(
        self, query: str, top_k: int | None = None, threshold: float | None = None
    ) -> dict[str, list[dict[str, Any]]]:
        """Return the hits of each collection, best first; an empty list if there are none.

        A hit has `id`, `text`, `metadata`, `distance`, `similarity` and `collection_name`.
        """
        hits_by_collection = self._comparison(query, top_k, threshold).collections
        return {
            name: [hit.model_dump(include=VECTOR_SEARCH) for hit in hits]
            for name, hits in hits_by_collection.items()
        }

    def search_merged(
        self, query: str, top_k: int | None = None, threshold: float | None = None
    ) -> list[dict[str, Any]]:
        """Return the best hits of all collections in one list, each entry once."""
        merged = self._comparison(query, top_k, threshold).merged
        return [hit.model_dump(include=VECTOR_SEARCH) for hit in merged]

    def get_all_documents(self) -> list[dict[str, Any]]:
        """Return every passage of every collection: `id`, `text`, `metadata`, `collection_name`."""
        with as_builtin():
            return [
                {
                    "id": identity(chunk.chunk_id, chunk.properties),
                    "text": chunk.body,
                    "metadata": public(chunk.properties),
                    "collection_name": name,
                }
                for name in self.collection_names
                for chunk in _all(self._context, self._context.ledger.collections.get(name))
            ]

    def _comparison(self, query: Any, top_k: Any, threshold: Any) -> Comparison:
        with as_builtin():
            fields = {"query": query, "top_k": top_k, "threshold": threshold}
            return compare(self._context, validated(Question, fields), self.collection_names)


def _all(context: AdapterContext, record: CollectionRecord) -> Iterator[StoredChunk]:
    """Iterate over the passages of live versions, ordered by document, position and row."""
    store, chunks = context.store_of(record.store), list[StoredChunk]()
    ids = store.find_ids(record.name, Where((PASSAGES,)))
    for at in range(0, len(ids), BATCH):
        some = ids[at : at + BATCH]
        seen = context.ledger.chunks.visible(some, collection=record.name)
        chunks += store.get_chunks(record.name, sorted(seen))
    yield from sorted(chunks, key=_order)


def _order(chunk: StoredChunk) -> tuple[Any, ...]:
    return (
        chunk.filename,
        chunk.document_id,
        chunk.ordinal,
        row_order(chunk.properties.get("id", "")),
    )
