"""The contract of stores: every store has these methods, with the same arguments and results.

A store contains what a search needs of each chunk. The ledger, not the store, decides which chunks
are live. `stores.operations` has the operations that an implementation provides; this module has
the queries that are computed from them in the same way for every store. docs/filters.md explains
the parameters of a search.
"""

from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from datetime import datetime
from functools import cached_property, partial

import numpy as np

from callslip.errors import InvalidRequest, MetricNotIndexed, StoreCannot
from callslip.reused_threads import ReusedThreads
from callslip.stores.fusion import Candidate, Fusion, Scale, fuse
from callslip.stores.metrics import Metric, distance, score_of_unit, scores
from callslip.stores.operations import StoreOperations
from callslip.stores.properties.filters import Condition, Where, also, normalize
from callslip.stores.records import (
    RetrieverHit,
    Scalar,
    StoredChunk,
    Value,
    Vector,
    VectorSpec,
    under,
    visible,
)
from callslip.stores.ties import ranked

LONGEST_VECTOR = 1e18
"""The greatest length of a vector: its square, and the square of its inverse, fit into 32 bits."""

EXACT_LIMIT = 10_000
"""The greatest number of vectors that are compared one by one if the metric has no index."""

_EXACT_BATCH = 1000


class Store(StoreOperations):
    """A store: the operations of an implementation, and the queries that are computed from them.

    Every method raises the errors that `StoreOperations` names.
    """

    @cached_property
    def _threads(self) -> ReusedThreads:
        """The threads that ask the keyword retriever while another asks the vector retriever."""
        return ReusedThreads()

    def vector_query(
        self,
        collection: str,
        vector: Vector,
        limit: int,
        where: Where | None = None,
        *,
        tenant: str = "",
        vector_name: str = "",
        method: Metric | None = None,
        horizon: float | None = None,
    ) -> list[RetrieverHit]:
        """The nearest chunks, best first, none farther than the distance `horizon`.

        `vector` has shape (dimension,). `method` defaults to the collection's metric. Another
        metric is computed exactly over the chunks that match. Raises MetricNotIndexed if more than
        EXACT_LIMIT match, InvalidRequest if the vector does not fit, VectorNotFound for an unknown
        vector name.
        """
        spec, metric = self._fitting(collection, vector, vector_name, method)
        if limit < 1:
            return []
        length = float(np.linalg.norm(vector))
        if metric == spec.metric and metric in self.indexed:
            hits = self.nearest(
                collection, vector, limit, where, tenant=tenant, vector_name=vector_name
            )
        elif spec.metric in self.indexed and metric in _by_cosine(spec):
            hits = [
                RetrieverHit(hit.chunk_id, score_of_unit(metric, hit.score, length))
                for hit in self.nearest(
                    collection, vector, limit, where, tenant=tenant, vector_name=vector_name
                )
            ]
        else:
            hits = self.exact_query(
                collection,
                vector,
                limit,
                where,
                tenant=tenant,
                vector_name=vector_name,
                metric=metric,
            )
        return [h for h in hits if horizon is None or distance(metric, h.score) <= horizon]

    def answers(self, spec: VectorSpec) -> frozenset[Metric]:
        """The metrics that an index supports for these vectors, for any number of chunks."""
        return (
            frozenset({spec.metric}) | _by_cosine(spec)
            if spec.metric in self.indexed
            else frozenset()
        )

    def exact_query(
        self,
        collection: str,
        vector: Vector,
        limit: int,
        where: Where | None,
        *,
        tenant: str,
        vector_name: str,
        metric: Metric,
    ) -> list[RetrieverHit]:
        """The nearest chunks by any metric, without an index: reads the vector of every match.

        Raises MetricNotIndexed if more than EXACT_LIMIT chunks match.
        """
        matching = self.count(collection, where, tenant=tenant)
        if matching > EXACT_LIMIT:
            raise MetricNotIndexed(
                f"Collection {collection} is not indexed by {metric}, and {matching} chunks match:"
                f" at most {EXACT_LIMIT} are compared one by one."
            )
        if not matching:
            return []
        ids = self.find_ids(collection, where, tenant=tenant)
        hits: list[RetrieverHit] = []
        for start in range(0, len(ids), _EXACT_BATCH):
            some = ids[start : start + _EXACT_BATCH]
            chunks = self.get_chunks(collection, some, tenant=tenant, include_vector=True)
            hits += score_chunks(chunks, vector, metric, vector_name)
        return ranked(hits)[:limit]

    def retrieve(
        self,
        collection: str,
        vector: Vector | None,
        terms: str,
        where: Where | None = None,
        *,
        tenant: str = "",
        vector_name: str = "",
        method: Metric | None = None,
        horizon: float | None = None,
        pool: int = 100,
        by_vector: bool = True,
    ) -> tuple[list[RetrieverHit], list[RetrieverHit]]:
        """Run both retrievers at once; return the hits of the vector and of the keyword retriever.

        Each returns at most `pool` hits, best first. The vector retriever returns none without a
        vector or if `by_vector` is false, the keyword retriever none without terms. The `horizon`
        limits the keyword retriever too: the distances of its hits to the vector are computed.
        """
        vectors: list[RetrieverHit] = []
        retriever: Future[list[RetrieverHit]] | None = None
        if terms:
            ask = partial(self.keyword_query, collection, terms, pool, where, tenant=tenant)
            retriever = self._threads.submit(ask)
        if vector is not None and by_vector:
            vectors = self.vector_query(
                collection,
                vector,
                pool,
                where,
                tenant=tenant,
                vector_name=vector_name,
                method=method,
                horizon=horizon,
            )
        keywords = retriever.result() if retriever else []
        if keywords and vector is not None and horizon is not None:
            near = self._within(
                collection, vector, keywords, tenant, vector_name, method, horizon
            ) | {hit.chunk_id for hit in vectors}
            keywords = [hit for hit in keywords if hit.chunk_id in near]
        return vectors, keywords

    def hybrid_query(
        self,
        collection: str,
        vector: Vector | None,
        terms: str,
        limit: int,
        where: Where | None = None,
        *,
        tenant: str = "",
        vector_name: str = "",
        method: Metric | None = None,
        horizon: float | None = None,
        pool: int = 100,
        fusion: Fusion = "weighted",
        alpha: float = 0.4,
        rrf_k: int = 60,
        scale: Scale | None = None,
    ) -> list[Candidate]:
        """Run both retrievers and fuse their hits in Callslip: every store ranks the same way.

        `alpha` is the weight of the vector retriever; at 0 or 1 the other retriever is not run.
        `retrieve` explains `horizon` and `pool`. Without `scale`, the fusion `calibrated` is the
        same as `weighted`. `fusion="native"` uses the store's own fusion if both retrievers run;
        raises StoreCannot if the store has none.
        """
        if fusion == "native" and vector is not None and terms and 0 < alpha < 1:
            return self.native_query(
                collection,
                vector,
                terms,
                limit,
                where,
                tenant=tenant,
                vector_name=vector_name,
                method=method,
                horizon=horizon,
                pool=pool,
                alpha=alpha,
            )
        vectors, keywords = self.retrieve(
            collection,
            vector,
            terms if alpha < 1 or vector is None else "",
            where,
            tenant=tenant,
            vector_name=vector_name,
            method=method,
            horizon=horizon,
            pool=pool,
            by_vector=alpha > 0,
        )
        return fuse(vectors, keywords, fusion=fusion, alpha=alpha, rrf_k=rrf_k, scale=scale)[:limit]

    def native_query(
        self,
        collection: str,
        vector: Vector,
        terms: str,
        limit: int,
        where: Where | None,
        *,
        tenant: str,
        vector_name: str,
        method: Metric | None,
        horizon: float | None,
        pool: int,
        alpha: float,
    ) -> list[Candidate]:
        """Both retrievers, fused by the store itself.

        Raises StoreCannot if the store has no fusion, or not by this metric.
        """
        raise StoreCannot(f"The store {self.kind} has no fusion of its own.")

    def _indexed(
        self, collection: str, vector: Vector, vector_name: str, method: Metric | None
    ) -> Metric:
        """Return the metric of native fusion; raise StoreCannot if it is not indexed."""
        spec, metric = self._fitting(collection, vector, vector_name, method)
        if metric != spec.metric or metric not in self.indexed:
            raise StoreCannot(f"{self.kind} fuses by the indexed metric alone, not by {metric}.")
        return metric

    def properties(
        self, collection: str, chunk_ids: Sequence[str], props: Iterable[str], *, tenant: str = ""
    ) -> dict[str, dict[str, Value]]:
        """The values of these properties that filters see, by chunk id.

        Ignores unknown ids and names.

        Stores override it to read neither texts nor vectors: a search calls it for hundreds of
        candidates.
        """
        wanted = frozenset(props)
        chunks = self.get_chunks(collection, chunk_ids, tenant=tenant)
        return {chunk.chunk_id: under(wanted, visible(chunk)) for chunk in chunks}

    def count_documents(
        self,
        collection: str,
        prop: str,
        values: Sequence[Scalar],
        where: Where | None = None,
        *,
        tenant: str = "",
    ) -> list[int]:
        """For each of these values, the number of documents with a matching chunk that has it.

        `values` are those of `aggregate_group_by`, which counts chunks; a value alone and a member
        of a list are counted together, as there.
        """
        return [
            len(
                {
                    document_id
                    for condition in _having(prop, value)
                    for document_id, _ in self.aggregate_group_by(
                        collection, "document_id", also(where, condition), tenant=tenant
                    )
                }
            )
            for value in values
        ]

    def deepest_level(self, collection: str, *, tenant: str = "") -> int | None:
        """The greatest level of any chunk; None if there is no chunk."""
        levels = (value for value, _ in self.aggregate_group_by(collection, "level", tenant=tenant))
        return max((int(level) for level in levels), default=None)

    def _fitting(
        self, collection: str, vector: Vector, vector_name: str, method: Metric | None
    ) -> tuple[VectorSpec, Metric]:
        """The specification and the metric for a query's vector.

        Raises InvalidRequest if the vector does not fit the specification.
        """
        spec = self.schema(collection).vector(vector_name)
        if np.shape(vector) != (spec.dimension,):
            self.forget(collection)
            spec = self.schema(collection).vector(vector_name)
        metric = method or spec.metric
        if np.shape(vector) != (spec.dimension,) or not np.isfinite(vector).all():
            raise InvalidRequest(f"The query's vector is not {spec.dimension} finite numbers.")
        length = float(np.linalg.norm(np.asarray(vector, np.float64)))
        if metric == "cosine" and not length:
            raise InvalidRequest("The query's vector has length 0 and so no direction.")
        if length > LONGEST_VECTOR or 0 < length < 1 / LONGEST_VECTOR:
            raise InvalidRequest(
                f"The query's vector has the length {length:.3g}, which 32 bits cannot square."
            )
        return spec, metric

    def _within(
        self,
        collection: str,
        vector: Vector,
        hits: Sequence[RetrieverHit],
        tenant: str,
        vector_name: str,
        method: Metric | None,
        horizon: float,
    ) -> set[str]:
        """The ids of the hits whose distance is at most the horizon."""
        _, metric = self._fitting(collection, vector, vector_name, method)
        ids = [hit.chunk_id for hit in hits]
        chunks = self.get_chunks(collection, ids, tenant=tenant, include_vector=True)
        measured = score_chunks(chunks, vector, metric, vector_name)
        return {h.chunk_id for h in measured if distance(metric, h.score) <= horizon}


def score_chunks(
    chunks: Iterable[StoredChunk], vector: Vector, metric: Metric, vector_name: str = ""
) -> list[RetrieverHit]:
    """Score chunks by their vectors of this name.

    Omits chunks without one; the order is undefined.
    """
    vectors_of = (
        (c.chunk_id, c.named.get(vector_name) if vector_name else c.vector) for c in chunks
    )
    pairs = [(chunk_id, v) for chunk_id, v in vectors_of if v is not None]
    if not pairs:
        return []
    distances = scores(metric, vector, np.stack([v for _, v in pairs]))
    return [RetrieverHit(i, float(score)) for (i, _), score in zip(pairs, distances, strict=True)]


def _having(prop: str, value: Scalar) -> tuple[Condition, Condition]:
    """The conditions of a value alone, a date as it is written, and of one in a list."""
    normal = normalize(value)
    alone = Condition(prop, "~", value) if isinstance(normal, datetime) else None
    return alone or Condition(prop, "==", normal), Condition(prop, "@", normal)


def _by_cosine(spec: VectorSpec) -> frozenset[Metric]:
    """The metrics that the cosine of an index determines: those of vectors of length 1."""
    unit = spec.metric == "cosine" and spec.normalized
    return frozenset({"dot", "l2-squared"}) if unit else frozenset()
