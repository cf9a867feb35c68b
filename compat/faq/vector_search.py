"""`VectorSearch`, as programs over Chroma know it."""

from collections.abc import Iterator, Sequence
from typing import Any

from compat.faq.comparing import Comparison, Question, compare, identity
from compat.faq.entries import BATCH, place
from compat.faq.places import made, names_of
from compat.floor import Floor, here
from compat.raising import as_builtin, validated
from stores.filters import Where
from stores.ledger import CollectionRecord
from stores.levels import PASSAGES
from stores.records import StoredChunk


class VectorSearch:
    """Searches one collection, or several beside each other. Threads may share it.

    All methods raise ValueError for what cannot be answered, KeyError for a collection that was
    deleted meanwhile, and a TransientError of `callslip.errors` for what may go well later.
    """

    def __init__(
        self, collection_name: str | Sequence[str] | None = None, *, floor: Floor | None = None
    ) -> None:
        """Open these collections, the one of the settings where none is named.

        One that is missing is made, for vectors of cosine distance. `floor` is what searches, this
        process by the settings where it is left out.
        """
        with as_builtin():
            self.collection_names = names_of(collection_name)
            self._floor = floor or here()
            made(self._floor, self.collection_names)

    def search(
        self, query: str, top_k: int | None = None, threshold: float | None = None
    ) -> dict[str, list[dict[str, Any]]]:
        """The hits of each collection, best first; an empty list where there is none.

        A hit has `id`, `text`, `metadata`, `distance`, `similarity` and `collection_name`.
        """
        found = self._asked(query, top_k, threshold).collections
        return {name: [hit.model_dump() for hit in hits] for name, hits in found.items()}

    def search_merged(
        self, query: str, top_k: int | None = None, threshold: float | None = None
    ) -> list[dict[str, Any]]:
        """The best hits of all collections in one list, each entry once."""
        return [hit.model_dump() for hit in self._asked(query, top_k, threshold).merged]

    def get_all_documents(self) -> list[dict[str, Any]]:
        """Every document of every collection: `id`, `text`, `metadata`, `collection_name`."""
        with as_builtin():
            return [
                {
                    "id": identity(chunk.chunk_id, chunk.properties),
                    "text": chunk.body,
                    "metadata": chunk.properties,
                    "collection_name": name,
                }
                for name in self.collection_names
                for chunk in _all(self._floor, self._floor.ledger.collections.get(name))
            ]

    def _asked(self, query: Any, top_k: Any, threshold: Any) -> Comparison:
        with as_builtin():
            asked = {"query": query, "top_k": top_k, "threshold": threshold}
            return compare(self._floor, validated(Question, asked), self.collection_names)


def _all(floor: Floor, record: CollectionRecord) -> Iterator[StoredChunk]:
    """The passages of live versions, in the order of their documents and rows."""
    store, found = floor.store_of(record.store), list[StoredChunk]()
    ids = store.find_ids(record.name, Where((PASSAGES,)))
    for at in range(0, len(ids), BATCH):
        some = ids[at : at + BATCH]
        seen = floor.ledger.chunks.visible(some, collection=record.name)
        found += store.get_chunks(record.name, sorted(seen))
    yield from sorted(found, key=_order)


def _order(chunk: StoredChunk) -> tuple[Any, ...]:
    return chunk.filename, chunk.document_id, chunk.ordinal, place(chunk.properties.get("id", ""))
