"""The hotset: passages that helped most of late, asked before the stores (specification 003 §11).

Where a question is nearly one that such a passage has answered, that passage is the answer, and no
leg of the store is run. It is served only if it is live by the ledger, and passes the search's
filter by what the store has of it now: a process keeps ids and centroids, nothing that could be
shown. docs/memory.md has what is gained and lost.
"""

import threading
import time
from dataclasses import dataclass

import numpy as np

from config.settings import Settings
from retrieval.caches import Watched
from retrieval.memory import generator
from retrieval.messages import SearchRequest
from retrieval.plan import Plan
from retrieval.shelf import Shelf
from stores.contract import Store
from stores.filters import matches
from stores.fusion import Candidate
from stores.ledger import CollectionRecord, Ledger
from stores.records import Vector, visible

LEAST_WINS = 1.5
"""Decayed wins less losses: two of the last weeks, or three of one half-life ago."""

MOST = 40
"""Passages that answer one question."""

CHECK_SECONDS = 1.0
"""How often it is looked whether a place has learned something."""

FADED_SECONDS = 3600.0
"""After which a place is read again though it has not: utilities fade."""

_PLACES = 64


@dataclass(frozen=True)
class Hot:
    """Chunks of a place and the unit centroids of what they answered: shape (chunks, dimension)."""

    chunk_ids: tuple[str, ...]
    centroids: Vector

    def near(self, vector: Vector, similarity: float) -> list[Candidate]:
        """Those whose centroid has such a cosine to a question, or a greater one; best first."""
        if not self.chunk_ids or vector.shape != self.centroids.shape[1:]:
            return []
        cosines = self.centroids @ (vector / max(float(np.linalg.norm(vector)), 1e-12))
        found = [
            Candidate(self.chunk_ids[at], float(cosines[at]), None, None)
            for at in np.flatnonzero(cosines >= similarity)
        ]
        return sorted(found, key=lambda c: (-c.score, c.chunk_id))[:MOST]


NOTHING = Hot((), np.zeros((0, 0), np.float32))

_State = tuple[float, int, int]
"""When the collection was made, how often its place learned something, and the hour."""


class Hotset:
    """The hot chunks of the places that a process searches, and how often they served.

    Threads may share it. One short read for a place and second tells of changes.
    """

    def __init__(
        self, ledger: Ledger, settings: Settings, *, check_seconds: float = CHECK_SECONDS
    ) -> None:
        self._ledger = ledger
        self._most = settings.search.hotset
        self._similarity = settings.search.hotset_similarity
        self._memory = settings.memory
        self._hot = Watched[_State, Hot](_PLACES, check_seconds)
        self._lock = threading.Lock()
        self.hits = 0
        self.misses = 0

    def may_answer(self, plan: Plan, request: SearchRequest, trace_id: str) -> bool:
        """Whether a search wants what helped before, and is not one that tries something new.

        Those that explore (`memory.exploration_ratio`, drawn by the trace's id) go past it: else
        what answers a question once would do so for ever, whatever is ingested. So does what says
        how vectors are compared, or wants parents in the hits' place, which a hit may not have.
        """
        knobs = plan.knobs
        plain = not (plan.nothing or plan.vector_name or plan.method or plan.horizon is not None)
        if not (self._most and knobs.hotset and knobs.memory_weight and plain):
            return False
        if request.query_embedding is not None or request.parent_strategy == "replace":
            return False
        if self._memory.exploration == "off":
            return True
        return float(generator(trace_id).random()) >= knobs.exploration_ratio

    def first_hop(
        self,
        store: Store,
        collection: CollectionRecord,
        plan: Plan,
        vector: Vector,
        terms: str,
        *,
        include_vector: bool,
    ) -> tuple[list[Candidate], Shelf] | None:
        """What helped with nearly this question, live and passing the filter; None: nothing did.

        The chunks are on the shelf, read from the store just now. They have every number of the
        question, given by its vector and its terms: to an embedder articles 70 and 71 are one.
        """
        near = self._of(collection, plan.tenant).near(vector, self._similarity)
        found = self._shelved(store, plan, near, terms, include_vector) if near else None
        with self._lock:
            self.hits += found is not None
            self.misses += found is None
        return found

    def _shelved(
        self, store: Store, plan: Plan, near: list[Candidate], terms: str, include_vector: bool
    ) -> tuple[list[Candidate], Shelf] | None:
        seen = self._ledger.chunks.seen(
            [c.chunk_id for c in near], collection=plan.collection, tenant=plan.tenant
        )
        shelf = Shelf(store, plan, seen, include_vector)
        chunks = shelf.read([c.chunk_id for c in near if c.chunk_id in seen])
        found = [
            c
            for c in near
            if c.chunk_id in chunks
            and (plan.where is None or matches(plan.where, visible(chunks[c.chunk_id])))
        ]
        if found and (numbers := {term for term in terms.split() if any(map(str.isdigit, term))}):
            ids = [c.chunk_id for c in found]
            held = store.terms(plan.collection, ids, tenant=plan.tenant)
            found = [c for c in found if numbers <= set(held.get(c.chunk_id, "").split())]
        return (found, shelf) if found else None

    def _of(self, collection: CollectionRecord, tenant: str) -> Hot:
        def state() -> _State:
            changes = self._ledger.memory.place(collection.name, tenant).changes
            return collection.created_at, changes, int(time.time() / FADED_SECONDS)

        def read(state: _State) -> Hot:
            return self._read(collection, tenant) if state[1] else NOTHING

        return self._hot.get((collection.name, tenant), state, read)

    def _read(self, collection: CollectionRecord, tenant: str) -> Hot:
        ids, rows, now = [], [], time.time()
        for stats in self._ledger.memory.best(collection.name, tenant=tenant, limit=self._most):
            fits = stats.dimension == collection.schema.default.dimension
            wins = stats.utility_now(now, self._memory.half_life_weeks)
            if fits and wins >= LEAST_WINS and (centroid := stats.centroid) is not None:
                ids.append(stats.chunk_id)
                rows.append(centroid / max(float(np.linalg.norm(centroid)), 1e-12))
        return Hot(tuple(ids), np.array(rows, np.float32))
