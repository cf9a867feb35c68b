"""A search, from the question to hits with their reasons. Knows no queue and no HTTP."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from callslip.errors import EmbedderDown, InvalidRequest
from config.settings import Settings
from models.analyzer import Analyzer
from models.embedder import Embedder
from retrieval.background import Background, Backgrounds
from retrieval.caches import Cache
from retrieval.hits import explained, make_hit
from retrieval.messages import Hit, SearchRequest, SearchResponse, TimeClamp
from retrieval.parents import place_parents
from retrieval.plan import Plan, check_query, check_request, make_plan
from retrieval.proximity import sequence
from retrieval.scored import Scored, fused, in_order
from retrieval.shelf import Shelf
from stores.contract import Store
from stores.fusion import Candidate, Scale
from stores.ledger import CollectionRecord, Ledger
from stores.records import Vector


@dataclass(frozen=True)
class Engine:
    """Everything a search needs, kept warm. One per process, made after the fork."""

    settings: Settings
    ledger: Ledger
    store_of: Callable[[str], Store]
    embedder: Embedder
    analyzer: Analyzer

    @cached_property
    def backgrounds(self) -> Backgrounds:
        """What scores are held against, by collection and tenant."""
        return Backgrounds(self.ledger)

    @cached_property
    def questions(self) -> Cache[Vector]:
        """Vectors of questions that were asked before."""
        return Cache(self.settings.search.query_cache)

    def search(self, request: SearchRequest) -> SearchResponse:
        """Answer a question.

        Raises EmptyQuery, QueryTooLong, InvalidFilter, InvalidRequest, CollectionNotFound,
        TenantNotFound, VectorNotFound, MetricNotIndexed, StoreCannot for a question that cannot be
        answered, StoreDown when the store does not answer. An embedder that does not answer is left
        out: the keyword leg answers alone and the response says so.
        """
        clock = _Clock()
        collection = self.ledger.collections.get(request.collection)
        store = self.store_of(collection.store)
        top = check_request(request, self.settings.search)
        with clock.stage("plan"):
            plan = make_plan(self.settings, self.ledger, store, collection, request)
        asked = self._ask(request, collection, plan.knobs.alpha, clock)
        with clock.stage("background"):
            background = self._background(plan, store)
            scale = _scale(background, store, plan, asked)
        candidates: list[Candidate] = []
        if not plan.nothing:
            with clock.stage("legs"):
                candidates = self._candidates(store, plan, asked, scale, max(plan.knobs.pool, top))
        with clock.stage("visible"):
            places = self.ledger.chunks.seen(
                [c.chunk_id for c in candidates], collection=collection.name, tenant=plan.tenant
            )
        seen = fused(c for c in candidates if c.chunk_id in places)
        shelf = Shelf(store, plan, places, request.include_vector)
        with clock.stage("rank"):
            content = self._content(seen, shelf, asked, background, scale)
        ranked = in_order(content)
        with clock.stage("fetch"):
            hits = self._hits(ranked[:top], shelf, request)
        if request.explain:
            hits = explained(hits, seen, content)
        full = any(
            sum(1 for c in candidates if getattr(c, leg)) >= max(plan.knobs.pool, top)
            for leg in ("vector", "keyword")
        )
        return SearchResponse(
            collection=collection.name,
            query=request.query,
            hits=hits,
            alpha=asked.alpha,
            fusion=plan.knobs.fusion,
            as_of=TimeClamp(
                at=plan.as_of.moment, source=plan.as_of.source, words=plan.as_of.words or None
            ),
            cut=request.top is None
            and self.settings.search.top is None
            and (len(seen) > top or full),
            candidates=len(candidates),
            partial=bool(asked.left_out),
            left_out=asked.left_out,
            timings=clock.timings,
        )

    def _ask(
        self, request: SearchRequest, collection: CollectionRecord, alpha: float, clock: "_Clock"
    ) -> "_Asked":
        """The question as terms and as a vector."""
        terms = ""
        if request.query:
            with clock.stage("analyze"):
                terms = self.analyzer.analyze(
                    check_query(request.query, self.settings.search.max_query_chars)
                )
        if request.query_embedding is not None:
            return _Asked(terms, np.asarray(request.query_embedding, np.float32), alpha, {})
        if self.embedder.lexical_only or alpha == 0:
            return _Asked(terms, None, 0.0, {})
        self._check_embedder(collection)
        with clock.stage("embed"):
            text = request.query.strip()
            vector = self.questions.get((self.embedder.model, text))
            if vector is None:
                try:
                    vector = self.embedder.query(text)
                except EmbedderDown as error:
                    return _Asked(terms, None, 0.0, {"vector": error.detail})
                self.questions.put((self.embedder.model, text), vector)
        return _Asked(terms, vector, alpha, {})

    def _background(self, plan: Plan, store: Store) -> Background | None:
        """A sample of what is searched, where the fusion asks for one."""
        if plan.knobs.fusion != "calibrated" or plan.nothing:
            return None
        stamp = self.ledger.events.corpus_stamp(plan.collection, plan.tenant)
        return self.backgrounds.of(store, plan.collection, plan.tenant, stamp)

    def _candidates(
        self, store: Store, plan: Plan, asked: "_Asked", scale: Scale | None, pool: int
    ) -> list[Candidate]:
        """What both legs find, fused."""
        return store.hybrid_query(
            plan.collection,
            asked.vector,
            asked.terms,
            2 * pool,
            plan.where,
            tenant=plan.tenant,
            vector_name=plan.vector_name,
            method=plan.method,
            horizon=plan.horizon,
            pool=pool,
            fusion=plan.knobs.fusion,
            alpha=asked.alpha,
            rrf_k=self.settings.search.rrf_k,
            scale=scale,
        )

    def _content(
        self,
        seen: list[Scored],
        shelf: Shelf,
        asked: "_Asked",
        background: Background | None,
        scale: Scale | None,
    ) -> list[Scored]:
        """Candidates by what they say: the best of them are read."""
        weight = (1 - asked.alpha) * shelf.plan.knobs.proximity
        if background is None or scale is None or not weight or " " not in asked.terms:
            return seen
        read = self.settings.search.read
        chunks = shelf.read([s.chunk_id for s in seen[:read]])
        idf = background.idf(asked.terms)
        return [
            s.plus("proximity", weight * sequence(asked.terms, chunks[s.chunk_id].terms or "", idf))
            if s.chunk_id in chunks
            else s
            for s in seen
        ]

    def _hits(self, best: Sequence[Scored], shelf: Shelf, request: SearchRequest) -> list[Hit]:
        """The chunks of the best candidates, with their parents where these are asked for."""
        ranked = {s.chunk_id: s for s in best}
        chunks = shelf.read(list(ranked))
        placed = [(chunk_id, "") for chunk_id in ranked if chunk_id in chunks]
        if request.parent_strategy is not None:
            wanted = {c.parent_id for c in chunks.values() if c.parent_id}
            may_be_seen = self.ledger.chunks.seen(
                sorted(wanted), collection=shelf.plan.collection, tenant=shelf.plan.tenant
            )
            shelf.places |= may_be_seen
            chunks |= shelf.read(list(may_be_seen))
            parents = {
                i: chunks[i].parent_id for i, _ in placed if chunks[i].parent_id in may_be_seen
            }
            parents = {child: parent for child, parent in parents.items() if parent in chunks}
            placed = place_parents([i for i, _ in placed], parents, request.parent_strategy)
        return [
            make_hit(rank, ranked[child or i], chunks[i], child, request)
            for rank, (i, child) in enumerate(placed, 1)
        ]

    def _check_embedder(self, collection: CollectionRecord) -> None:
        if collection.embedder != self.embedder.model:
            raise InvalidRequest(
                f"collection {collection.name!r} was embedded with {collection.embedder!r},"
                f" this installation runs {self.embedder.model!r}",
                hint="Set the embedder back, ingest into a new collection, or send alpha 0.",
            )


@dataclass(frozen=True)
class _Asked:
    """A question in the forms that the legs understand, and legs that are left out."""

    terms: str
    vector: Vector | None
    alpha: float
    left_out: dict[str, str]


def _scale(background: Background | None, store: Store, plan: Plan, asked: _Asked) -> Scale | None:
    """What the legs' scores are worth for this question."""
    if background is None:
        return None
    metric = plan.method or store.schema(plan.collection).vector(plan.vector_name).metric
    bm25 = store.keyword_score == "bm25"
    return background.scale(asked.vector, plan.vector_name, metric, asked.terms, bm25)


class _Clock:
    def __init__(self) -> None:
        self.timings: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.timings[name] = round((time.perf_counter() - start) * 1000, 3)
