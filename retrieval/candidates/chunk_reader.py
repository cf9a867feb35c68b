"""The chunk reader of one search, which reads each chunk and its terms only once."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from callslip.errors import KeywordsDown, StoreDown, StoreReadOnly
from callslip.models.text.analyzer import Analyzer
from callslip.retrieval.query.plan import Plan
from callslip.stores.contract import Store
from callslip.stores.ledger.documents.chunks import Seen
from callslip.stores.records import StoredChunk


class ChunkReader:
    """Reads the chunks of a search from the store and caches them.

    `positions` maps the id of each live chunk to its position in the text of the live version, as
    the ledger records it.
    """

    def __init__(
        self, store: Store, plan: Plan, positions: Mapping[str, Seen], analyzer: Analyzer
    ) -> None:
        self.positions = positions
        self._store, self._plan, self._analyzer = store, plan, analyzer
        self._chunks: dict[str, StoredChunk] = {}
        self._terms: dict[str, str] = {}

    def read(
        self, chunk_ids: Sequence[str], positions: Mapping[str, Seen] | None = None
    ) -> dict[str, StoredChunk]:
        """Return the chunks with these ids that the store has, by id.

        `positions` is needed for chunks that are not candidates, such as parents.
        """
        missing = [chunk_id for chunk_id in chunk_ids if chunk_id not in self._chunks]
        if missing:
            position_of = self.positions if positions is None else positions
            chunks = self._read(missing)
            self._chunks |= {c.chunk_id: _at(c, position_of[c.chunk_id]) for c in chunks}
        return {i: self._chunks[i] for i in chunk_ids if i in self._chunks}

    def _read(self, chunk_ids: Sequence[str]) -> list[StoredChunk]:
        """Read chunks from their copies if the store has any, else from the store's server.

        Copies have no vectors, and are read in a fraction of the time of a call to the server.
        While the server does not answer, chunks without a copy are left out.
        """
        store, collection, tenant = self._store, self._plan.collection, self._plan.tenant
        vectors = self._plan.needs_vectors
        copies: list[StoredChunk] = []
        if store.local_keywords and not vectors:
            with suppress(KeywordsDown, StoreReadOnly):
                copies = store.copies(collection, chunk_ids, tenant=tenant)
        copied = {chunk.chunk_id for chunk in copies}
        rest = [chunk_id for chunk_id in chunk_ids if chunk_id not in copied]
        if not rest:
            return copies
        try:
            chunks = store.get_chunks(collection, rest, tenant=tenant, include_vector=vectors)
        except StoreDown:
            if not store.local_keywords:
                raise
            return copies or store.copies(collection, rest, tenant=tenant)
        return [*copies, *chunks]

    def terms(self, chunk_ids: Sequence[str]) -> dict[str, str]:
        """Return the analyzed terms, separated by spaces, of the chunks that the store has."""
        if missing := [i for i in chunk_ids if i not in self._terms]:
            plan = self._plan
            if plan.record.attached:  # the store of an attached table has no analyzed terms
                self._terms |= {i: self._analyzed(c) for i, c in self.read(missing).items()}
            else:
                try:
                    self._terms |= self._store.terms(plan.collection, missing, tenant=plan.tenant)
                except KeywordsDown:  # the terms are stored with the keyword index
                    self._terms |= {i: self._analyzed(c) for i, c in self.read(missing).items()}
        return {i: self._terms[i] for i in chunk_ids if i in self._terms}

    def _analyzed(self, chunk: StoredChunk) -> str:
        return self._analyzer.analyze(f"{chunk.title}\n{chunk.body}")


def _at(chunk: StoredChunk, seen: Seen) -> StoredChunk:
    if seen.span is None:
        return chunk
    start, end = seen.span
    return replace(chunk, start=start, end=end)
