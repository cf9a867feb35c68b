"""The hotset: the passages of the greatest utility, checked before the stores are searched.

See specification 003 §11. If a question is nearly the same as a question that such a passage has
answered, the passage is the answer, and no retriever runs. The passage is returned only if it is
live according to the ledger and its stored properties pass the filter of the search. A process
caches only chunk ids and centroids, never text. docs/memory.md has the measured effect.
"""

import threading
import time
from dataclasses import dataclass

import numpy as np

from callslip.config.settings import Settings
from callslip.models.text.analyzer import Analyzer
from callslip.retrieval.caches import Watched
from callslip.retrieval.candidates.chunk_reader import ChunkReader
from callslip.retrieval.chance import generator
from callslip.retrieval.query.plan import Plan
from callslip.stores.contract import Store
from callslip.stores.fusion import Candidate
from callslip.stores.ledger import CollectionRecord, Ledger
from callslip.stores.properties.filters import matches
from callslip.stores.records import Vector, visible

LEAST_WINS = 1.5
"""The minimum utility (decayed wins minus decayed losses): two wins of the last weeks, or three
wins of one half-life ago."""

MOST = 40
"""The maximum number of passages that answer one question."""

CHECK_SECONDS = 1.0
"""The interval in seconds between checks for new feedback in a collection and tenant."""

FADED_SECONDS = 3600.0
"""The interval in seconds after which the hot chunks are read again without new feedback, because
utilities decay."""

PAST = 0.15
"""The share of searches that the hotset does not answer, so that newer documents are found too."""

_MOST_SCOPES = 64


@dataclass(frozen=True)
class Hot:
    """Hot chunks of a collection and tenant, with a unit centroid of each chunk's questions.

    `centroids` has the shape (chunks, dimension).
    """

    chunk_ids: tuple[str, ...]
    centroids: Vector

    def near(self, vector: Vector, similarity: float) -> list[Candidate]:
        """Return the chunks whose centroid's cosine to `vector` is at least `similarity`.

        The best chunk is first; there are at most `MOST`.
        """
        if not self.chunk_ids or vector.shape != self.centroids.shape[1:]:
            return []
        cosines = self.centroids @ (vector / max(float(np.linalg.norm(vector)), 1e-12))
        candidates = [
            Candidate(self.chunk_ids[at], float(cosines[at]), None, None)
            for at in np.flatnonzero(cosines >= similarity)
        ]
        return sorted(candidates, key=lambda c: (-c.score, c.chunk_id))[:MOST]


NOTHING = Hot((), np.zeros((0, 0), np.float32))

_State = tuple[float, int, int]
"""The collection's creation time, the number of memory changes, and the hour."""


class Hotset:
    """The hot chunks of each collection and tenant that a process searches, and hit counters.

    Threads may share one instance. One short ledger read per second, collection and tenant detects
    changes.
    """

    def __init__(
        self, ledger: Ledger, settings: Settings, *, check_seconds: float = CHECK_SECONDS
    ) -> None:
        self._ledger = ledger
        self._most = settings.search.hotset
        self._similarity = settings.search.hotset_similarity
        self._memory = settings.memory
        self._hot = Watched[_State, Hot](_MOST_SCOPES, check_seconds)
        self._lock = threading.Lock()
        self.hits = 0
        self.misses = 0

    def may_answer(self, plan: Plan) -> bool:
        """Whether the hotset may answer a search.

        It may not answer a share PAST of searches, drawn with the trace id as seed: otherwise a
        passage that answered a question once would answer it forever, whatever is ingested later.
        The share does not depend on `exploration_ratio`; with `memory.exploration: off` it is 0.
        The hotset may not answer a search without memory, or one that sets the vector, its metric
        or the horizon, or that replaces hits with their parents, because a hit may have no parent.
        """
        parameters, request = plan.parameters, plan.request
        plain = not (plan.nothing or plan.vector_name or plan.method or plan.horizon is not None)
        if not (self._most and parameters.hotset and parameters.memory_weight and plain):
            return False
        if request.query_embedding is not None or request.parent_strategy == "replace":
            return False
        if self._memory.exploration == "off":
            return True
        return float(generator(plan.chance).random()) >= PAST

    def answer(
        self,
        ledger: Ledger,
        store: Store,
        plan: Plan,
        vector: Vector,
        terms: str,
        analyzer: Analyzer,
    ) -> tuple[list[Candidate], ChunkReader] | None:
        """Return the live passages that answer the question, with the reader of their chunks.

        `ledger` is that of the reader; `vector` and `terms` are those of the question. The passages
        helped with nearly the same question, pass the filter, and contain every number of the
        question, because an embedder does not tell article 70 from article 71. Returns None if
        there is no such passage.
        """
        near = self._of(plan.record, plan.tenant).near(vector, self._similarity)
        passing = self._passing(ledger, store, plan, near, terms, analyzer) if near else None
        with self._lock:
            self.hits += passing is not None
            self.misses += passing is None
        return passing

    def _passing(
        self,
        ledger: Ledger,
        store: Store,
        plan: Plan,
        near: list[Candidate],
        terms: str,
        analyzer: Analyzer,
    ) -> tuple[list[Candidate], ChunkReader] | None:
        positions = ledger.chunks.seen(
            [c.chunk_id for c in near], collection=plan.collection, tenant=plan.tenant
        )
        reader = ChunkReader(store, plan, positions, analyzer)
        chunks = reader.read([c.chunk_id for c in near if c.chunk_id in positions])
        passing = [
            c
            for c in near
            if c.chunk_id in chunks
            and (plan.where is None or matches(plan.where, visible(chunks[c.chunk_id])))
        ]
        if passing and (numbers := {term for term in terms.split() if any(map(str.isdigit, term))}):
            ids = [c.chunk_id for c in passing]
            terms_of = store.terms(plan.collection, ids, tenant=plan.tenant)
            passing = [c for c in passing if numbers <= set(terms_of.get(c.chunk_id, "").split())]
        return (passing, reader) if passing else None

    def _of(self, collection: CollectionRecord, tenant: str) -> Hot:
        def state() -> _State:
            changes = self._ledger.memory.scope(collection.name, tenant).changes
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
