"""One question on its way: each stage adds to what is known, in the order of `answer`."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

from callslip.errors import EmbedderDown, InvalidRequest
from retrieval.background import Background
from retrieval.basis import Basis, basis
from retrieval.diversity import diversify
from retrieval.facet_weights import Weights, weights
from retrieval.hits import explained, make_hit
from retrieval.lookup import NOTHING, Asked, Found, Lookup, pool_of
from retrieval.memory import Explored
from retrieval.messages import STRANGERS, Hit, SearchRequest, SearchResponse, TimeClamp
from retrieval.parents import place_parents
from retrieval.plan import Plan, check_query, check_request, make_plan
from retrieval.prior import prior
from retrieval.proximity import sequence
from retrieval.remembering import remember
from retrieval.rerank import rerank
from retrieval.scored import Scored, fused, in_order
from retrieval.shelf import Shelf
from retrieval.spacing import to_embed
from retrieval.timings import Timings
from retrieval.trace import new_id
from retrieval.understand import Understood, understand
from stores.records import StoredChunk, Vector

if TYPE_CHECKING:
    from retrieval.engine import Engine


class Search:
    """A search that runs once."""

    def __init__(self, engine: "Engine", request: SearchRequest) -> None:
        self.engine = engine
        self.request = request
        self.timings = Timings()
        self.left_out: dict[str, str] = {}
        self.top = check_request(request, engine.settings.search)
        self.collection = engine.ledger.collections.get(request.collection)
        self.store = engine.store_of(self.collection.store)
        with self.timings.stage("plan"):
            self.plan: Plan = make_plan(
                engine.settings, engine.ledger, self.store, self.collection, request
            )
        self.understood: Understood | None = None
        self.terms = ""
        self.vector: Vector | None = None
        self.alpha = self.plan.knobs.alpha
        self.weights: Weights = {}
        self.lookup: Lookup | None = None
        self.shelf = Shelf(self.store, self.plan, {}, self._needs_vectors)
        self.hotset = False
        self.found = NOTHING
        self.content: list[Scored] = []
        self.ranked: list[Scored] = []
        self.explored: Explored | None = None
        self.trace_id = new_id()
        self._held: dict[str, str] = {}

    def answer(self) -> SearchResponse:
        """Run all stages, in their order."""
        self.read()
        self.embed()
        self.look()
        self.weigh()
        self.narrow()
        return self.rank()

    def look(self) -> None:
        """Candidates: what helped with nearly this question before, else what both legs find."""
        if self._hot():
            return
        asked = Asked(self.request.query, self._words, self.vector, self.alpha)
        kept = self.request.query_embedding is None and not self.collection.attached
        self.lookup = Lookup(
            self.engine, self.collection, self.plan, asked, self.top, self.timings, kept
        )
        self.lookup.look()

    def narrow(self) -> None:
        """Look again among what the question's facets hold; then keep what is live."""
        if self.lookup is None:
            return
        self.lookup.narrow(self.weights)
        self.found = self.lookup.found()
        self.shelf.places.update(self.found.places)

    def rank(self) -> SearchResponse:
        """The hits in their order, from what was found."""
        seen, shelf = fused(self.found.live, "hotset" if self.hotset else "fused"), self.shelf
        with self.timings.stage("rank"):
            content = self._reranked(self._near(seen), shelf)
            with_prior = self._with_prior(content)
        with self.timings.stage("memory"):
            ranked = self._remembered(with_prior)
        ranked = self._diverse(ranked, shelf)
        with self.timings.stage("fetch"):
            hits = self._hits(ranked[: self.top], shelf)
        if self.request.explain:
            hits = explained(hits, seen, content, ranked, self.basis)
        self.content, self.ranked = content, ranked
        return self._response(hits, len(seen))

    def basis(self, scored: Scored) -> Basis:
        """What the weights are multiplied with in the score of a candidate."""
        return basis(scored, self.alpha, self.plan.knobs, self.found.scale)

    def background(self) -> Background:
        """A sample of the collection, to hold scores against."""
        plan, stamp = self.plan, self.found.stamp
        return self.found.background or self.engine.backgrounds.of(
            self.store, plan.collection, plan.tenant, stamp
        )

    def terms_of(self, chunk_ids: Sequence[str]) -> dict[str, str]:
        """The terms of those of these chunks that the store has, by id; each is read once."""
        if missing := [i for i in chunk_ids if i not in self._held]:
            plan = self.plan
            if self.collection.attached:  # its store has no terms of ours
                self._held |= {i: self._analyzed(c) for i, c in self.shelf.read(missing).items()}
            else:
                self._held |= self.store.terms(plan.collection, missing, tenant=plan.tenant)
        return {i: self._held[i] for i in chunk_ids if i in self._held}

    def read(self) -> None:
        """The question read by rules, and as terms."""
        if not self.request.query:
            return
        settings = self.engine.settings.search
        with self.timings.stage("analyze"):
            text = check_query(self.request.query, settings.max_query_chars)
            today = datetime.now().astimezone().date()
            self.understood = understand(text, today, self.engine.recognizer)
            self.terms = self.engine.analyzer.analyze(self.understood.topic)

    def embed(self) -> None:
        """The question as a vector; without one the keyword leg answers alone."""
        if self.request.query_embedding is not None:
            self.vector = np.asarray(self.request.query_embedding, np.float32)
            return
        embedder, known = self.engine.embedder, self.engine.questions
        if embedder.lexical_only or self.alpha == 0:
            self.alpha = 0.0
            return
        if self._stranger():
            self.alpha, self.left_out = 0.0, {"vector": STRANGERS}
            return
        self._check_embedder()
        with self.timings.stage("embed"):
            topic = self.understood.topic if self.understood else self.request.query
            key = embedder.model, to_embed(topic)
            self.vector = known.get(key)
            if self.vector is None:
                try:
                    self.vector = embedder.query(key[1])
                except EmbedderDown as error:
                    self.alpha, self.left_out = 0.0, {"vector": error.detail}
                    return
                known.put(key, self.vector)

    @property
    def _words(self) -> str:
        """What the keyword leg looks for: a table of somebody else analyzes words by itself."""
        if not self.collection.attached:
            return self.terms
        return self.understood.topic if self.understood else self.request.query

    def _analyzed(self, chunk: StoredChunk) -> str:
        return self.engine.analyzer.analyze(f"{chunk.title}\n{chunk.body}")

    def _stranger(self) -> bool:
        """Whether questions cannot be embedded as the collection was, which is a table's right."""
        return self.collection.attached and self.collection.embedder != self.engine.embedder.model

    def _check_embedder(self) -> None:
        model = self.engine.embedder.model
        if self.collection.embedder != model:
            raise InvalidRequest(
                f"collection {self.collection.name!r} was embedded with"
                f" {self.collection.embedder!r}, this installation runs {model!r}",
                hint="Set the embedder back, ingest into a new collection, or send alpha 0.",
            )

    def _hot(self) -> bool:
        """Whether what helped with nearly this question before is the answer."""
        hotset, chance = self.engine.hotset, self.request.replay or self.trace_id
        if self.vector is None or not hotset.may_answer(self.plan, self.request, chance):
            return False
        with self.timings.stage("hotset"):
            first = hotset.first_hop(
                self.store,
                self.collection,
                self.plan,
                self.vector,
                self.terms,
                include_vector=self._needs_vectors,
            )
        if first is None:
            return False
        candidates, self.shelf = first
        self.hotset = True
        stamp = self.engine.ledger.events.corpus_stamp(self.plan.collection, self.plan.tenant)
        self.found = Found(candidates, candidates, self.shelf.places, stamp)
        return True

    @property
    def _needs_vectors(self) -> bool:
        return self.request.include_vector or self.plan.knobs.mmr_lambda < 1

    def weigh(self) -> None:
        """How much the question is about each facet value."""
        plan, model = self.plan, self.engine.embedder.model
        if not plan.knobs.facets_weight or self.vector is None or plan.vector_name:
            return
        with self.timings.stage("facets"):
            table = self.engine.facet_tables.of(plan.collection, plan.tenant, model)
            if table is not None:
                self.weights = weights(self.vector, table, plan.knobs.facets_top)

    def _near(self, seen: list[Scored]) -> list[Scored]:
        """The best candidates are read: do the question's words stand together there?"""
        weight = (1 - self.alpha) * self.plan.knobs.proximity
        background = self.found.background
        if background is None or self.found.scale is None or not weight or " " not in self.terms:
            return seen
        read = self.engine.settings.search.read
        held = self.terms_of([s.chunk_id for s in seen[:read]])
        idf = background.idf(self.terms)
        shares = {i: sequence(self.terms, terms, idf) for i, terms in held.items()}
        return in_order(s.plus("proximity", weight * shares.get(s.chunk_id, 0.0)) for s in seen)

    def _reranked(self, content: list[Scored], shelf: Shelf) -> list[Scored]:
        """The best by the reranker, where there is one and it answers in time."""
        knobs, reranker = self.plan.knobs, self.engine.reranker
        if reranker is None or not knobs.rerank or not self.request.query:
            return content
        settings = self.engine.settings.rerank.model_copy(update={"top": knobs.rerank_top})
        head = content[: settings.top]
        chunks = shelf.read([s.chunk_id for s in head])
        bodies = [chunks[s.chunk_id].body if s.chunk_id in chunks else "" for s in head]
        with self.timings.stage("rerank"):
            made = rerank(
                reranker, self.request.query, bodies, [s.score for s in content], settings
            )
        if made.left_out is not None:
            self.left_out["rerank"] = made.left_out
            return content
        moved = (score - s.score for s, score in zip(content, made.scores, strict=True))
        after = [s.plus("rerank", move) for s, move in zip(content, moved, strict=True)]
        return [after[at] for at in made.order]

    def _with_prior(self, content: list[Scored]) -> list[Scored]:
        """Candidates with what their facets add."""
        if not self.weights:
            return content
        plan, most = self.plan, self._unit(content) * self.plan.knobs.facets_weight
        held = self.store.properties(
            plan.collection, [s.chunk_id for s in content], self.weights, tenant=plan.tenant
        )
        return [
            s.plus("prior", prior(held.get(s.chunk_id, {}), self.weights, most)) for s in content
        ]

    def _remembered(self, scored: list[Scored]) -> list[Scored]:
        """Candidates in their order, with what helped with such questions before."""
        intent = self.understood.intent if self.understood else ""
        ranked, self.explored = remember(
            self.engine.ledger,
            self.engine.settings.memory,
            self.plan,
            scored,
            (None if self.plan.vector_name else self.vector, intent),
            unit=self._unit(scored),
            shown=self.top,
            trace_id=self.request.replay or self.trace_id,
        )
        return ranked

    def _unit(self, content: Sequence[Scored]) -> float:
        """What 1 is worth in scores: reciprocal ranks, and a store's own, are on other scales."""
        if self.plan.knobs.fusion in ("calibrated", "weighted"):
            return 1.0
        return max((s.score for s in content), default=1.0)

    def _diverse(self, ranked: list[Scored], shelf: Shelf) -> list[Scored]:
        """The first hits by maximal marginal relevance, the rest behind them."""
        relevance = self.plan.knobs.mmr_lambda
        head = ranked[: max(self.top, self.plan.knobs.rerank_top)]
        if relevance >= 1 or len(head) < 2:
            return ranked
        name = self.plan.vector_name
        chunks = shelf.read([s.chunk_id for s in head])
        vectors = {i: c.named.get(name) if name else c.vector for i, c in chunks.items()}
        rows = [row for s in head if (row := vectors.get(s.chunk_id)) is not None]
        known = [s for s in head if vectors.get(s.chunk_id) is not None]
        if len(known) < 2:
            return ranked
        order = diversify([s.score for s in known], np.stack(rows), relevance, len(known))
        placed = {known[at].chunk_id for at in order}
        return [*(known[at] for at in order), *(s for s in ranked if s.chunk_id not in placed)]

    def _hits(self, best: Sequence[Scored], shelf: Shelf) -> list[Hit]:
        """The chunks of the best candidates, with their parents where these are asked for."""
        plan = self.plan
        ranked = {s.chunk_id: s for s in best}
        chunks = shelf.read(list(ranked))
        placed = [(chunk_id, "") for chunk_id in ranked if chunk_id in chunks]
        if self.request.parent_strategy is not None:
            wanted = {c.parent_id for c in chunks.values() if c.parent_id}
            seen = self.engine.ledger.chunks.seen(
                sorted(wanted), collection=plan.collection, tenant=plan.tenant
            )
            shelf.places.update(seen)
            chunks |= shelf.read(list(seen))
            parents = {i: chunks[i].parent_id for i, _ in placed if chunks[i].parent_id in seen}
            parents = {child: parent for child, parent in parents.items() if parent in chunks}
            placed = place_parents([i for i, _ in placed], parents, self.request.parent_strategy)
        return [
            make_hit(rank, ranked[child or i], chunks[i], child, self.request)
            for rank, (i, child) in enumerate(placed, 1)
        ]

    def _response(self, hits: list[Hit], seen: int) -> SearchResponse:
        as_of, found = self.plan.as_of, self.found
        full = found.full(pool_of(self.plan, self.top))
        unlimited = self.request.top is None and self.engine.settings.search.top is None
        return SearchResponse(
            trace_id=self.trace_id,
            collection=self.plan.collection,
            query=self.request.query,
            hits=hits,
            alpha=self.alpha,
            fusion=self.plan.knobs.fusion,
            as_of=TimeClamp(at=as_of.moment, source=as_of.source, words=as_of.words or None),
            cut=unlimited and (self.hotset or seen > self.top or full),
            candidates=len(found.candidates),
            hotset=self.hotset,
            partial=bool(self.left_out),
            left_out=self.left_out,
            timings=self.timings,
        )
