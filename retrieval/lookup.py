"""The candidates of a question: what both legs find, again where facets narrow it, still live."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from retrieval import branches
from retrieval.background import Background
from retrieval.branches import Branch
from retrieval.facet_weights import Weights
from retrieval.plan import Plan
from retrieval.timings import Timings
from stores.contract import Store
from stores.filters import Where
from stores.fusion import Candidate, Scale
from stores.ledger import CollectionRecord
from stores.ledger.chunks import Seen
from stores.records import Vector

if TYPE_CHECKING:
    from retrieval.engine import Engine

LOOKS = 3
"""How often candidates are looked for while versions go live."""


@dataclass(frozen=True)
class Asked:
    """A question as the legs take it; `weights` say which facets it is about."""

    text: str
    terms: str
    vector: Vector | None
    alpha: float
    weights: Weights


@dataclass(frozen=True)
class Found:
    """The candidates, those of live versions, and where these stand.

    `background` and `scale` say what the legs' scores are worth, `stamp` in which state the
    collection was, `branch` which of `branches` was searched too.
    """

    candidates: Sequence[Candidate]
    live: Sequence[Candidate]
    places: dict[str, Seen]
    stamp: int
    background: Background | None = None
    scale: Scale | None = None
    branches: Sequence[Branch] = ()
    branch: Branch | None = None

    def full(self, pool: int) -> bool:
        """Whether a leg may have more than it gave."""
        return _full(self.candidates, pool)


Kept = tuple[list[Branch], Branch | None, list[Candidate]]
"""What a lookup found, as it is kept for the next search."""

NOTHING = Found((), (), {}, 0)


def pool_of(plan: Plan, top: int) -> int:
    """How many candidates each leg gives."""
    return max(plan.knobs.pool, top)


@dataclass
class Lookup:
    """One look for the candidates of a question; of one that is `kept` they may be older."""

    engine: "Engine"
    collection: CollectionRecord
    plan: Plan
    asked: Asked
    top: int
    timings: Timings
    kept: bool
    store: Store = field(init=False)
    stamp: int = field(init=False)
    background: Background | None = None
    scale: Scale | None = None

    def __post_init__(self) -> None:
        self.store = self.engine.store_of(self.collection.store)
        self.stamp = self._read_stamp()
        self.pool = pool_of(self.plan, self.top)

    def run(self) -> Found:
        """Look.

        A version that goes live between the looks at the store and the ledger hides chunks whose
        successors the first one did not see: then both are taken again.
        """
        if self.plan.nothing:
            return replace(NOTHING, stamp=self.stamp)
        with self.timings.stage("background"):
            self._hold_against()
        for _ in range(LOOKS):
            listed, branch, candidates = self._candidates()
            with self.timings.stage("visible"):
                places = self.engine.ledger.chunks.seen(
                    [c.chunk_id for c in candidates],
                    collection=self.plan.collection,
                    tenant=self.plan.tenant,
                )
                live = [c for c in candidates if c.chunk_id in places]
                stamp = self._read_stamp()
            if stamp == self.stamp or len(live) == len(candidates):
                break
            self.stamp = stamp
        about = self.background, self.scale, listed, branch
        return Found(candidates, live, places, self.stamp, *about)

    def _read_stamp(self) -> int:
        return self.engine.ledger.events.corpus_stamp(self.plan.collection, self.plan.tenant)

    def _hold_against(self) -> None:
        """What the legs' scores are worth for this question, where the fusion goes by that."""
        plan, asked, store = self.plan, self.asked, self.store
        if plan.knobs.fusion != "calibrated":
            return
        known = self.engine.backgrounds.of(store, plan.collection, plan.tenant, self.stamp)
        metric = plan.method or store.schema(plan.collection).vector(plan.vector_name).metric
        bm25 = store.keyword_score == "bm25"
        self.background = known
        self.scale = known.scale(asked.vector, plan.vector_name, metric, asked.terms, bm25)

    def _candidates(self) -> Kept:
        """The candidates, found now or a moment ago in the same state of the collection.

        Whether they may still be seen is asked each time.
        """
        known = self.engine.candidates
        key = self._key()
        if key and (held := known.get(key)) is not None:
            return held
        with self.timings.stage("legs"):
            first = self._both_legs(self.plan.where)
        with self.timings.stage("narrow"):
            found = self._narrowed(first)
        if key:
            known.put(key, found)
        return found

    def _key(self) -> Hashable:
        """All that the candidates depend on; None where they are not kept."""
        if not self.kept or not self.engine.settings.search.result_cache:
            return None
        plan, collection, asked = self.plan, self.collection, self.asked
        weighed = tuple((facet, tuple(w.items())) for facet, w in asked.weights.items())
        place = self.store.kind, collection.name, collection.created_at, plan.tenant, self.stamp
        question = asked.text.strip(), asked.alpha, asked.vector is None, self.pool, self.scale
        # As text: a filter for 1 and one for True are the same to a dictionary.
        how = repr(plan.where), plan.knobs, plan.vector_name, plan.method, plan.horizon
        return place, question, how, weighed

    def _both_legs(self, where: Where | None, limit: int | None = None) -> list[Candidate]:
        """What both legs find, fused."""
        plan, asked = self.plan, self.asked
        return self.store.hybrid_query(
            plan.collection,
            asked.vector,
            asked.terms,
            limit or 2 * self.pool,
            where,
            tenant=plan.tenant,
            vector_name=plan.vector_name,
            method=plan.method,
            horizon=plan.horizon,
            pool=min(self.pool, limit or self.pool),
            fusion=plan.knobs.fusion,
            alpha=asked.alpha,
            rrf_k=self.engine.settings.search.rrf_k,
            scale=self.scale,
        )

    def _narrowed(self, candidates: list[Candidate]) -> Kept:
        """The candidates with those of a search among what the question's facets hold.

        Only where the first search left something out, and scores of two searches mean the same.
        """
        plan = self.plan
        if self.scale is None or not plan.knobs.narrow or not _full(candidates, self.pool):
            return [], None, candidates
        proposed = branches.propose(self.asked.weights, plan.where)
        listed = branches.count(
            self.store, plan.collection, plan.tenant, proposed, self.engine.threads
        )
        branch = branches.choose(listed)
        if branch is None:
            return listed, None, candidates
        second = self._both_legs(branch.where, branches.LIMIT)
        return listed, branch, branches.merged(candidates, second)


def _full(candidates: Sequence[Candidate], pool: int) -> bool:
    return any(
        sum(1 for c in candidates if getattr(c, leg)) >= pool for leg in ("vector", "keyword")
    )
