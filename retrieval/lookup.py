"""The candidates of a question: what both legs find, again where facets narrow it, still live."""

from collections.abc import Callable, Hashable, Sequence
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
    """A question as the legs take it."""

    text: str
    terms: str
    vector: Vector | None
    alpha: float


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
"""What a look found, as it is kept for the next search."""

NOTHING = Found((), (), {}, 0)


def pool_of(plan: Plan, top: int) -> int:
    """How many candidates each leg gives."""
    return max(plan.knobs.pool, top)


@dataclass
class Lookup:
    """The look for the candidates of a question: `look`, `narrow`, `found`, in this order.

    Those of a question that is `kept` may be some seconds old.
    """

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
    weights: Weights = field(default_factory=dict)
    first: list[Candidate] = field(default_factory=list)
    listed: list[Branch] = field(default_factory=list)
    branch: Branch | None = None
    candidates: list[Candidate] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store = self.engine.store_of(self.collection.store)
        self.stamp = self._read_stamp()
        self.pool = pool_of(self.plan, self.top)

    def look(self) -> None:
        """What both legs find, now or a moment ago in the same state of the collection."""
        if self.plan.nothing:
            return
        with self.timings.stage("background"):
            self._hold_against()
        self._look()

    def narrow(self, weights: Weights) -> None:
        """With it those of a search among what the question's facets, with these weights, hold.

        Only where the first look left something out, and scores of two searches mean the same.
        """
        self.weights = weights
        self.listed, self.branch, self.candidates = [], None, self.first
        if self.scale is None or not self.plan.knobs.narrow or not _full(self.first, self.pool):
            return
        proposed = branches.propose(weights, self.plan.where)
        if not proposed:
            return
        with self.timings.stage("narrow"):
            self.listed, self.branch, self.candidates = self._known(
                self._key(weights), lambda: self._narrowed(proposed)
            )

    def found(self) -> Found:
        """The candidates, with which of them are of live versions: that is asked each time.

        A version that goes live between the looks at the store and the ledger hides chunks whose
        successors the first one did not see: then all are taken again.
        """
        if self.plan.nothing:
            return replace(NOTHING, stamp=self.stamp)
        for looked in range(1, LOOKS + 1):
            with self.timings.stage("visible"):
                places = self._places([c.chunk_id for c in self.candidates])
                live = [c for c in self.candidates if c.chunk_id in places]
                stamp = self._read_stamp()
            if stamp == self.stamp or len(live) == len(self.candidates) or looked == LOOKS:
                break
            self.stamp = stamp
            self._look()
            self.narrow(self.weights)
        about = self.background, self.scale, self.listed, self.branch
        return Found(self.candidates, live, places, self.stamp, *about)

    def _places(self, chunk_ids: list[str]) -> dict[str, Seen]:
        """Those that may be seen; of a table of somebody else every row, which is its document."""
        if self.collection.attached:
            return {chunk_id: Seen(chunk_id, None) for chunk_id in chunk_ids}
        plan = self.plan
        return self.engine.ledger.chunks.seen(
            chunk_ids, collection=plan.collection, tenant=plan.tenant
        )

    def _look(self) -> None:
        with self.timings.stage("legs"):
            _, _, self.first = self._known(
                self._key(None), lambda: ([], None, self._both_legs(self.plan.where))
            )
        self.candidates = self.first

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

    def _known(self, key: Hashable, make: Callable[[], Kept]) -> Kept:
        """What was kept under the key, else what `make` gives; without a key nothing is."""
        known = self.engine.candidates
        if key and (held := known.get(key)) is not None:
            return held
        made = make()
        if key:
            known.put(key, made)
        return made

    def _key(self, weights: Weights | None) -> Hashable:
        """All that the candidates depend on; None where they are not kept."""
        if not self.kept or not self.engine.settings.search.result_cache:
            return None
        plan, collection, asked = self.plan, self.collection, self.asked
        place = self.store.kind, collection.name, collection.created_at, plan.tenant, self.stamp
        question = asked.text.strip(), asked.alpha, asked.vector is None, self.pool, self.scale
        # As text: a filter for 1 and one for True are the same to a dictionary.
        how = repr(plan.where), plan.knobs, plan.vector_name, plan.method, plan.horizon
        return place, question, how, repr(weights)

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

    def _narrowed(self, proposed: list[Branch]) -> Kept:
        plan = self.plan
        listed = branches.count(
            self.store, plan.collection, plan.tenant, proposed, self.engine.threads
        )
        branch = branches.choose(listed)
        if branch is None:
            return listed, None, self.first
        second = self._both_legs(branch.where, branches.LIMIT)
        return listed, branch, branches.merged(self.first, second)


def _full(candidates: Sequence[Candidate], pool: int) -> bool:
    return any(
        sum(1 for c in candidates if getattr(c, leg)) >= pool for leg in ("vector", "keyword")
    )
