"""A search, from the question to hits with their reasons. Knows no queue and no HTTP."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from callslip.errors import EmbedderDown, EmptyQuery, InvalidRequest, QueryTooLong
from config.ranking import SearchSettings
from config.settings import Settings
from models.analyzer import Analyzer
from models.embedder import Embedder
from retrieval.clamp import AsOf, choose, clamp_known
from retrieval.messages import Hit, Leg, Legs, SearchRequest, SearchResponse, Span, TimeClamp
from retrieval.narrowing import at_level, check_properties_known, passages
from retrieval.parents import place_parents
from stores.contract import Store
from stores.filters import Where, parse
from stores.fusion import Candidate, Fusion, LegScore
from stores.ledger import CollectionRecord, Ledger
from stores.ledger.chunks import Seen
from stores.records import StoredChunk, Vector
from stores.schemas import check_tenant


@dataclass(frozen=True)
class Engine:
    """Everything a search needs, kept warm. One per process, made after the fork."""

    settings: Settings
    ledger: Ledger
    store_of: Callable[[str], Store]
    embedder: Embedder
    analyzer: Analyzer

    def search(self, request: SearchRequest) -> SearchResponse:
        """Answer a question.

        Raises EmptyQuery, QueryTooLong, InvalidFilter, InvalidRequest, CollectionNotFound,
        TenantNotFound, VectorNotFound, MetricNotIndexed, StoreCannot for a question that cannot be
        answered, StoreDown when the store does not answer. An embedder that does not answer is left
        out: the keyword leg answers alone and the response says so.
        """
        settings = self.settings.search
        clock = _Clock()
        collection = self.ledger.collections.get(request.collection)
        store = self.store_of(collection.store)
        top = check_request(request, settings)
        with clock.stage("plan"):
            plan = self._plan(request, collection, store)
        asked = self._ask(request, collection, plan.alpha, clock)
        candidates: list[Candidate] = []
        if not plan.nothing:
            with clock.stage("legs"):
                candidates = store.hybrid_query(
                    collection.name,
                    asked.vector,
                    asked.terms,
                    2 * max(settings.pool, top),
                    plan.where,
                    tenant=plan.tenant,
                    vector_name=request.vector_name or "",
                    method=request.method,
                    horizon=request.horizon,
                    pool=max(settings.pool, top),
                    fusion=plan.fusion,
                    alpha=asked.alpha,
                    rrf_k=settings.rrf_k,
                )
        with clock.stage("visible"):
            places = self.ledger.chunks.seen(
                [c.chunk_id for c in candidates], collection=collection.name, tenant=plan.tenant
            )
        seen = [c for c in candidates if c.chunk_id in places]
        with clock.stage("fetch"):
            hits = self._fetch(store, plan, seen[:top], places, request)
        full = any(
            sum(1 for c in candidates if getattr(c, leg)) >= max(settings.pool, top)
            for leg in ("vector", "keyword")
        )
        return SearchResponse(
            collection=collection.name,
            query=request.query,
            hits=hits,
            alpha=asked.alpha,
            fusion=plan.fusion,
            as_of=TimeClamp(
                at=plan.as_of.moment, source=plan.as_of.source, words=plan.as_of.words or None
            ),
            cut=request.top is None and settings.top is None and (len(seen) > top or full),
            candidates=len(candidates),
            partial=bool(asked.left_out),
            left_out=asked.left_out,
            timings=clock.timings,
        )

    def _plan(self, request: SearchRequest, collection: CollectionRecord, store: Store) -> "_Plan":
        """What is looked for where; every name that the request gives is checked here."""
        tenant = request.tenant or ""
        check_tenant(collection.schema, tenant)
        if tenant:
            self.ledger.tenants.check(collection.name, tenant)
        collection.schema.vector(request.vector_name or "")
        settings = self.settings.search
        names = self.ledger.collections.property_names(collection.name)
        where = parse(request.having_all, request.having_any)
        check_properties_known(where, names)
        as_of = choose(request.as_of, request.query, settings.as_of, datetime.now().astimezone())
        where = clamp_known(where, as_of, names)
        level = settings.level if request.operation_level is None else request.operation_level
        nothing = False
        if level == "passages":
            where = passages(where)
        elif level != "every":
            where = at_level(store, collection.name, tenant, level, where)
            nothing = where is None
        alpha = settings.alpha if request.alpha is None else request.alpha
        if request.query_embedding is not None and not request.query:
            alpha = 1.0
        fusion = request.fusion or settings.fusion
        return _Plan(collection.name, tenant, where, nothing, alpha, fusion, as_of)

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
            try:
                return _Asked(terms, self.embedder.query(request.query.strip()), alpha, {})
            except EmbedderDown as error:
                return _Asked(terms, None, 0.0, {"vector": error.detail})

    def _fetch(
        self,
        store: Store,
        plan: "_Plan",
        best: list[Candidate],
        places: dict[str, Seen],
        request: SearchRequest,
    ) -> list[Hit]:
        """Read the chunks of the best candidates, and their parents where these are asked for.

        Where they stand in the live version's text is the ledger's to say.
        """

        def read(chunk_ids: Sequence[str], places: dict[str, Seen]) -> dict[str, StoredChunk]:
            chunks = store.get_chunks(
                plan.collection,
                chunk_ids,
                tenant=plan.tenant,
                include_vector=request.include_vector,
            )
            return {c.chunk_id: _placed(c, places[c.chunk_id]) for c in chunks}

        candidates = {c.chunk_id: c for c in best}
        chunks = read(list(candidates), places)
        placed = [(chunk_id, "") for chunk_id in candidates if chunk_id in chunks]
        if request.parent_strategy is not None:
            wanted = {c.parent_id for c in chunks.values() if c.parent_id}
            may_be_seen = self.ledger.chunks.seen(
                sorted(wanted), collection=plan.collection, tenant=plan.tenant
            )
            chunks |= read([i for i in may_be_seen if i not in chunks], may_be_seen)
            parents = {
                i: chunks[i].parent_id for i, _ in placed if chunks[i].parent_id in may_be_seen
            }
            parents = {child: parent for child, parent in parents.items() if parent in chunks}
            placed = place_parents([i for i, _ in placed], parents, request.parent_strategy)
        return [
            _hit(rank, candidates[child or i], chunks[i], child, request.vector_name or "")
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
class _Plan:
    """Where a search looks; `nothing` where no chunk can match."""

    collection: str
    tenant: str
    where: Where | None
    nothing: bool
    alpha: float
    fusion: Fusion
    as_of: AsOf


@dataclass(frozen=True)
class _Asked:
    """A question in the forms that the legs understand, and legs that are left out."""

    terms: str
    vector: Vector | None
    alpha: float
    left_out: dict[str, str]


def check_request(request: SearchRequest, settings: SearchSettings) -> int:
    """Refuse what cannot be answered, without asking any store; gives the most hits to return."""
    if request.query or request.query_embedding is None:
        check_query(request.query, settings.max_query_chars)
    if request.query_embedding is not None and not np.isfinite(request.query_embedding).all():
        raise InvalidRequest("query_embedding holds a value that is not a finite number")
    parse(request.having_all, request.having_any)
    top = request.top or settings.top or settings.max_top
    if top > settings.max_top:
        raise InvalidRequest(
            f"top is {top}, at most {settings.max_top} hits are given",
            hint="Lower top, or raise search.max_top in the settings.",
        )
    return top


def check_query(query: str, longest: int) -> str:
    """The question without outer white space; EmptyQuery or QueryTooLong where it is none."""
    text = query.encode("utf-8", "replace").decode("utf-8").strip()
    if not any(character.isalnum() for character in text):
        raise EmptyQuery("the query has no letter or digit")
    if len(text) > longest:
        raise QueryTooLong(f"the query has {len(text)} characters, at most {longest} are read")
    return text


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


def _placed(chunk: StoredChunk, seen: Seen) -> StoredChunk:
    if seen.span is None:
        return chunk
    start, end = seen.span
    return replace(chunk, start=start, end=end)


def _leg(score: LegScore | None) -> Leg | None:
    return None if score is None else Leg(rank=score.rank, score=round(score.score, 6))


def _hit(rank: int, candidate: Candidate, chunk: StoredChunk, child: str, vector_name: str) -> Hit:
    """A hit; a parent has the score and the legs of the child that it came by."""
    vector = chunk.named.get(vector_name) if vector_name else chunk.vector
    return Hit(
        rank=rank,
        score=round(candidate.score, 6),
        chunk_id=chunk.chunk_id,
        document_id=chunk.document_id,
        title=chunk.title,
        filename=chunk.filename,
        section=chunk.section,
        heading=chunk.heading,
        text=chunk.body,
        span=Span(start=chunk.start, end=chunk.end),
        lang=chunk.lang,
        properties=chunk.properties,
        legs=Legs(vector=_leg(candidate.vector), keyword=_leg(candidate.keyword)),
        level=chunk.level,
        parent_id=chunk.parent_id or None,
        parent_of=child or None,
        vector=None if vector is None else vector.tolist(),
    )
