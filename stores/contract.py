"""The contract of stores: what every one of them does, in the same words and with the same result.

A store holds what a search needs of each chunk. It does not decide what is live: the ledger does.
docs/filters.md says what the parameters of a search mean.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ClassVar, Literal

import numpy as np

from callslip.errors import InvalidRequest, MetricNotIndexed, StoreCannot
from stores.filters import Where
from stores.fusion import Candidate, Fusion, Scale, fuse
from stores.metrics import Metric, distance, score_of_unit, scores
from stores.records import (
    BatchOutcome,
    ChunkRecord,
    CollectionSchema,
    DocumentRecord,
    LegHit,
    Scalar,
    StoredChunk,
    Value,
    Vector,
    VectorSpec,
    under,
    visible,
)
from stores.ties import ranked

LONGEST_VECTOR = 1e18
"""Its square, and that of its inverse, are numbers of 32 bits."""

EXACT_LIMIT = 10_000
"""Vectors that are compared one by one where the index knows only another metric."""

_EXACT_BATCH = 1000


class Store(ABC):
    """One client per process, made after the fork.

    Every method raises StoreDown when the store does not answer and CollectionNotFound where the
    collection does not exist. In a collection with tenants every method that reads or writes
    chunks or documents needs one: InvalidRequest without, TenantNotFound for an unknown one; in
    one without tenants, a tenant is an InvalidRequest. Ties in scores are broken by chunk id,
    ascending.
    """

    kind: ClassVar[str]

    indexed: ClassVar[frozenset[Metric]]
    """Metrics that `nearest` answers where the schema names them."""

    keyword_score: ClassVar[Literal["bm25", "tfidf"]] = "bm25"
    """What the keyword leg ranks by; tfidf: the cosine over words and pairs of neighbours."""

    # Collections

    @abstractmethod
    def ping(self) -> None:
        """Raise StoreDown unless the store answers."""

    @abstractmethod
    def ensure_schema(self, schema: CollectionSchema) -> None:
        """Make the collection where it is missing. Idempotent; another schema is a Conflict."""

    @abstractmethod
    def schema(self, collection: str) -> CollectionSchema:
        """The schema that the collection was made with."""

    @abstractmethod
    def collections(self) -> list[str]:
        """The names of all collections that Callslip made in this store, in order."""

    @abstractmethod
    def drop_collection(self, collection: str) -> None:
        """Remove the collection and all it holds. Idempotent."""

    def check_names(self, collection: str, tenant: str = "") -> None:  # noqa: B027 - most take any
        """Raise InvalidRequest where the store can have no collection, or tenant, of this name."""

    @abstractmethod
    def ensure_tenant(self, collection: str, tenant: str) -> None:
        """Make the tenant where it is missing. InvalidRequest in a collection without tenants."""

    @abstractmethod
    def drop_tenant(self, collection: str, tenant: str) -> None:
        """Remove the tenant and all it holds. Idempotent."""

    @abstractmethod
    def tenants(self, collection: str) -> list[str]:
        """The names of the collection's tenants, in order; none in one without tenants."""

    # Writing

    @abstractmethod
    def batch_upsert_documents(
        self, collection: str, documents: Sequence[DocumentRecord], *, tenant: str = ""
    ) -> BatchOutcome:
        """Write documents; the same id again replaces."""

    @abstractmethod
    def batch_upsert_chunks(
        self, collection: str, chunks: Sequence[ChunkRecord], *, tenant: str = ""
    ) -> BatchOutcome:
        """Write chunks; the same id again replaces. A bad object fails alone and is named.

        What is acknowledged is found by the next call. A NaN vector, one of another dimension, an
        empty id or a property of an unknown type is a failed object, never a failed batch
        (`stores.checks` has the rules). BatchInterrupted where the store is lost on the way.
        """

    @abstractmethod
    def delete_chunks(self, collection: str, chunk_ids: Iterable[str], *, tenant: str = "") -> None:
        """Remove chunks from every half. Unknown ids are nothing to do."""

    @abstractmethod
    def delete_document(self, collection: str, document_id: str, *, tenant: str = "") -> None:
        """Remove a document and all its chunks. Idempotent."""

    # Searching

    @abstractmethod
    def build_where(self, where: Where) -> object:
        """Translate a filter into the store's own language; InvalidFilter where it cannot."""

    @abstractmethod
    def nearest(
        self,
        collection: str,
        vector: Vector,
        limit: int,
        where: Where | None = None,
        *,
        tenant: str = "",
        vector_name: str = "",
    ) -> list[LegHit]:
        """The nearest chunks by the metric that the vectors are indexed with, best first.

        Called only with a vector that fits and where `indexed` has the metric.
        """

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
    ) -> list[LegHit]:
        """The nearest chunks, best first, none farther than `horizon`.

        `method` is the collection's own metric where it is left out. Another one is computed
        exactly over the chunks that match; MetricNotIndexed where these are too many.
        InvalidRequest for a vector that does not fit, VectorNotFound for an unknown name.
        """
        spec, metric = self._fitting(collection, vector, vector_name, method)
        if limit < 1:
            return []
        native = spec.metric in self.indexed
        length = float(np.linalg.norm(vector))
        if native and metric == spec.metric:
            hits = self.nearest(
                collection, vector, limit, where, tenant=tenant, vector_name=vector_name
            )
        elif (
            native
            and spec.normalized
            and spec.metric == "cosine"
            and score_of_unit(metric, 1.0, length) is not None
        ):
            near = self.nearest(
                collection, vector, limit, where, tenant=tenant, vector_name=vector_name
            )
            hits = [LegHit(h.chunk_id, score_of_unit(metric, h.score, length) or 0.0) for h in near]
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
        """The methods that such vectors answer by index, at any size.

        The cosine of a vector of length 1 says its inner product and its Euclidean distance too.
        """
        if spec.metric not in self.indexed:
            return frozenset()
        if spec.metric == "cosine" and spec.normalized:
            return frozenset({"cosine", "dot", "l2-squared"})
        return frozenset({spec.metric})

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
    ) -> list[LegHit]:
        """The nearest chunks by any metric, without an index: every vector that matches is read."""
        matching = self.count(collection, where, tenant=tenant)
        if matching > EXACT_LIMIT:
            raise MetricNotIndexed(
                f"Collection {collection} is not indexed by {metric}, and {matching} chunks match:"
                f" at most {EXACT_LIMIT} are compared one by one."
            )
        ids = self.find_ids(collection, where, tenant=tenant)
        hits: list[LegHit] = []
        for start in range(0, len(ids), _EXACT_BATCH):
            some = ids[start : start + _EXACT_BATCH]
            chunks = self.get_chunks(collection, some, tenant=tenant, include_vector=True)
            hits += score_chunks(chunks, vector, metric, vector_name)
        return ranked(hits)[:limit]

    @abstractmethod
    def keyword_query(
        self,
        collection: str,
        terms: str,
        limit: int,
        where: Where | None = None,
        *,
        tenant: str = "",
    ) -> list[LegHit]:
        """The best chunks by `keyword_score` over analyzed terms, best first; all share a term."""

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
        """Both legs at once, fused by Callslip so that every store ranks alike.

        `alpha` is the weight of the vector leg; at 0 or 1 the other leg is not run. A horizon
        holds for the keyword leg too: its hits are measured. `scale` is what `calibrated` goes by.
        `fusion="native"` leaves the fusing to the store; StoreCannot where it has none.
        """
        vectors: list[LegHit] = []
        leg: Future[list[LegHit]] | None = None
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
        with ThreadPoolExecutor(1) as beside:
            if terms and (alpha < 1 or vector is None):
                leg = beside.submit(
                    self.keyword_query, collection, terms, pool, where, tenant=tenant
                )
            if vector is not None and alpha > 0:
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
            keywords = leg.result() if leg else []
        if keywords and vector is not None and horizon is not None:
            near = self._within(
                collection, vector, keywords, tenant, vector_name, method, horizon
            ) | {hit.chunk_id for hit in vectors}
            keywords = [hit for hit in keywords if hit.chunk_id in near]
        return fuse(
            [(h.chunk_id, h.score) for h in vectors],
            [(h.chunk_id, h.score) for h in keywords],
            fusion=fusion,
            alpha=alpha,
            rrf_k=rrf_k,
            scale=scale,
        )[:limit]

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
        """Both legs as the store itself fuses them."""
        raise StoreCannot(f"The store {self.kind} has no fusion of its own.")

    def _indexed(
        self, collection: str, vector: Vector, vector_name: str, method: Metric | None
    ) -> None:
        """Raise StoreCannot where the store would have to fuse by a metric that it has not."""
        spec, metric = self._fitting(collection, vector, vector_name, method)
        if metric != spec.metric or metric not in self.indexed:
            raise StoreCannot(f"{self.kind} fuses by the indexed metric alone, not by {metric}.")

    def property_names(self, collection: str) -> set[str] | None:
        """The names of properties, where the store alone knows them; None where the ledger does."""
        return None

    def _fitting(
        self, collection: str, vector: Vector, vector_name: str, method: Metric | None
    ) -> tuple[VectorSpec, Metric]:
        """What the query's vector is compared with and how; InvalidRequest unless it fits."""
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
        hits: Sequence[LegHit],
        tenant: str,
        vector_name: str,
        method: Metric | None,
        horizon: float,
    ) -> set[str]:
        """The ids of those hits that are not farther than the horizon."""
        _, metric = self._fitting(collection, vector, vector_name, method)
        ids = [hit.chunk_id for hit in hits]
        chunks = self.get_chunks(collection, ids, tenant=tenant, include_vector=True)
        measured = score_chunks(chunks, vector, metric, vector_name)
        return {h.chunk_id for h in measured if distance(metric, h.score) <= horizon}

    # Reading

    @abstractmethod
    def get_chunks(
        self,
        collection: str,
        chunk_ids: Sequence[str],
        *,
        tenant: str = "",
        include_vector: bool = False,
        include_terms: bool = False,
    ) -> list[StoredChunk]:
        """The chunks of these ids, in this order; unknown ids are left out.

        Vectors come back as they were given, to the precision of 32 bits.
        """

    def properties(
        self, collection: str, chunk_ids: Sequence[str], props: Iterable[str], *, tenant: str = ""
    ) -> dict[str, dict[str, Value]]:
        """What filters see of these chunks under these names; unknown ids and names are left out.

        A store reads neither texts nor vectors for it: a search asks it of hundreds of candidates.
        """
        wanted = frozenset(props)
        chunks = self.get_chunks(collection, chunk_ids, tenant=tenant)
        return {chunk.chunk_id: under(wanted, visible(chunk)) for chunk in chunks}

    @abstractmethod
    def terms(
        self, collection: str, chunk_ids: Sequence[str], *, tenant: str = ""
    ) -> dict[str, str]:
        """The analyzed terms of these chunks; unknown ids are left out.

        A store reads neither texts nor vectors for it: a search asks it of what it ranks.
        """

    @abstractmethod
    def get_documents(
        self, collection: str, document_ids: Sequence[str], *, tenant: str = ""
    ) -> list[DocumentRecord]:
        """The documents of these ids, in this order; unknown ids are left out."""

    @abstractmethod
    def find_ids(
        self, collection: str, where: Where | None = None, *, tenant: str = ""
    ) -> list[str]:
        """The ids of all chunks that match, ascending."""

    @abstractmethod
    def chunk_ids(
        self, collection: str, document_id: str | None = None, *, tenant: str = ""
    ) -> dict[str, set[str]]:
        """The ids that each half of the store holds of a document, or of all; for counts, audits.

        Halves are named `vector` and `keyword`; those of named vectors, `vector:NAME`, hold only
        the chunks that have one. A store that keeps all in one object gives the same set for each.
        """

    @abstractmethod
    def document_ids(self, collection: str, *, tenant: str = "") -> set[str]:
        """The ids of all documents that have a record or a chunk in any half."""

    @abstractmethod
    def count(self, collection: str, where: Where | None = None, *, tenant: str = "") -> int:
        """How many chunks match."""

    @abstractmethod
    def aggregate_group_by(
        self, collection: str, prop: str, where: Where | None = None, *, tenant: str = ""
    ) -> list[tuple[Scalar, int]]:
        """How many chunks hold each value of a property, most frequent first, then by value.

        A list counts once for each of its values. Dates are given as they were written.
        """

    def deepest_level(self, collection: str, *, tenant: str = "") -> int | None:
        """The greatest level that a chunk has; None where there is no chunk."""
        levels = (value for value, _ in self.aggregate_group_by(collection, "level", tenant=tenant))
        return max((int(level) for level in levels), default=None)

    def forget(self, collection: str) -> None:  # noqa: B027 - most stores keep nothing
        """Look the collection up anew at its next use: another process may have made it anew."""

    def maintain(self) -> None:  # noqa: B027 - most stores look after themselves
        """Do work that can wait; the maintenance worker calls it again and again."""

    @abstractmethod
    def close(self) -> None:
        """Give up connections; the store is not used afterwards."""


def score_chunks(
    chunks: Iterable[StoredChunk], vector: Vector, metric: Metric, vector_name: str = ""
) -> list[LegHit]:
    """Score chunks by their vectors, those without one of this name left out; in no order."""
    held = ((c.chunk_id, c.named.get(vector_name) if vector_name else c.vector) for c in chunks)
    pairs = [(chunk_id, v) for chunk_id, v in held if v is not None]
    if not pairs:
        return []
    found = scores(metric, vector, np.stack([v for _, v in pairs]))
    return [LegHit(i, float(score)) for (i, _), score in zip(pairs, found, strict=True)]
