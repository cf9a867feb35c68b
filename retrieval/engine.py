"""A search, from the question to hits with their reasons. Knows no queue and no HTTP."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from callslip.errors import EmbedderDown, EmptyQuery, InvalidRequest, QueryTooLong
from config.settings import Settings
from models.analyzer import Analyzer
from models.embedder import Embedder, Vectors
from retrieval.messages import Hit, Leg, Legs, SearchRequest, SearchResponse, Span
from stores.contract import Store
from stores.filters import parse
from stores.fusion import Candidate, LegScore
from stores.ledger import CollectionRecord, Ledger
from stores.records import StoredChunk


@dataclass(frozen=True)
class Engine:
    """Everything a search needs, kept warm. One per process, made after the fork."""

    settings: Settings
    ledger: Ledger
    store: Store
    embedder: Embedder
    analyzer: Analyzer

    def search(self, request: SearchRequest) -> SearchResponse:
        """Answer a question.

        Raises EmptyQuery, QueryTooLong, InvalidFilter, InvalidRequest, CollectionNotFound for a
        question that cannot be answered, StoreDown when the store does not answer. An embedder that
        does not answer is left out: the keyword leg answers alone and the response says so.
        """
        settings = self.settings.search
        clock = _Clock()
        query = check_query(request.query, settings.max_query_chars)
        collection = self.ledger.collections.get(request.collection)
        where = parse(request.having_all, request.having_any)
        top = check_top(request.top or settings.top, settings.max_top)
        alpha = settings.alpha if request.alpha is None else request.alpha
        fusion = request.fusion or settings.fusion
        left_out: dict[str, str] = {}
        with clock.stage("analyze"):
            terms = self.analyzer.analyze(query)
        vector: Vectors | None = None
        if self.embedder.lexical_only:
            alpha = 0.0
        elif alpha > 0:
            self._check_embedder(collection)
            with clock.stage("embed"):
                try:
                    vector = self.embedder.query(query)
                except EmbedderDown as error:
                    left_out["vector"] = error.detail
                    alpha = 0.0
        with clock.stage("legs"):
            candidates = self.store.hybrid_query(
                collection.name,
                vector,
                terms,
                2 * settings.pool,
                where,
                pool=max(settings.pool, top),
                fusion=fusion,
                alpha=alpha,
                rrf_k=settings.rrf_k,
            )
        with clock.stage("visible"):
            visible = self.ledger.chunks.visible([c.chunk_id for c in candidates])
        best = [c for c in candidates if c.chunk_id in visible][:top]
        with clock.stage("fetch"):
            stored = self.store.get_chunks(collection.name, [c.chunk_id for c in best])
        found = {chunk.chunk_id: chunk for chunk in stored}
        kept = [(c, found[c.chunk_id]) for c in best if c.chunk_id in found]
        return SearchResponse(
            collection=collection.name,
            query=request.query,
            hits=[_hit(rank, c, chunk) for rank, (c, chunk) in enumerate(kept, 1)],
            alpha=alpha,
            fusion=fusion,
            candidates=len(candidates),
            partial=bool(left_out),
            left_out=left_out,
            timings=clock.timings,
        )

    def _check_embedder(self, collection: CollectionRecord) -> None:
        if collection.embedder != self.embedder.model:
            raise InvalidRequest(
                f"collection {collection.name!r} was embedded with {collection.embedder!r},"
                f" this installation runs {self.embedder.model!r}",
                hint="Set the embedder back, ingest into a new collection, or send alpha 0.",
            )


def check_query(query: str, longest: int) -> str:
    """The question without outer white space; EmptyQuery or QueryTooLong where it is none."""
    text = query.encode("utf-8", "replace").decode("utf-8").strip()
    if not any(character.isalnum() for character in text):
        raise EmptyQuery("the query has no letter or digit")
    if len(text) > longest:
        raise QueryTooLong(f"the query has {len(text)} characters, at most {longest} are read")
    return text


def check_top(top: int, most: int) -> int:
    """The number of hits asked for; InvalidRequest where it is more than is given."""
    if top > most:
        raise InvalidRequest(
            f"top is {top}, at most {most} hits are given",
            hint="Lower top, or raise search.max_top in the settings.",
        )
    return top


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


def _leg(score: LegScore | None) -> Leg | None:
    return None if score is None else Leg(rank=score.rank, score=round(score.score, 6))


def _hit(rank: int, candidate: Candidate, chunk: StoredChunk) -> Hit:
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
    )
