"""The chunks that a search reads."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from retrieval.plan import Plan
from stores.contract import Store
from stores.ledger.chunks import Seen
from stores.records import StoredChunk


@dataclass
class Shelf:
    """The chunks of a search, each read once.

    Where they stand in the live version's text is the ledger's to say.
    """

    store: Store
    plan: Plan
    places: dict[str, Seen]
    include_vector: bool
    chunks: dict[str, StoredChunk] = field(default_factory=dict)

    def read(self, chunk_ids: Sequence[str]) -> dict[str, StoredChunk]:
        """Those of these chunks that the store has, by id."""
        missing = [chunk_id for chunk_id in chunk_ids if chunk_id not in self.chunks]
        if missing:
            found = self.store.get_chunks(
                self.plan.collection,
                missing,
                tenant=self.plan.tenant,
                include_vector=self.include_vector,
            )
            self.chunks |= {c.chunk_id: _placed(c, self.places[c.chunk_id]) for c in found}
        return {i: self.chunks[i] for i in chunk_ids if i in self.chunks}


def _placed(chunk: StoredChunk, seen: Seen) -> StoredChunk:
    if seen.span is None:
        return chunk
    start, end = seen.span
    return replace(chunk, start=start, end=end)
