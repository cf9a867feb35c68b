"""Proposes facets: properties that divide a collection well, and clusters of its passages.

This module only makes proposals and changes no settings. A property becomes a facet through the
setting `facets.names`, a cluster through a rule that sets a property (docs/enrichment.md).
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from callslip.retrieval.facets.readable import read_consistently
from callslip.retrieval.facets.texts import label
from callslip.stores.contract import Store
from callslip.stores.ledger import Ledger
from callslip.stores.properties.filters import Where, instant
from callslip.stores.records import FILTERABLE, TIMES, Scalar, StoredChunk, Vector

SAMPLE = 1000
"""The number of passages in the sample; their ids are hashes and evenly spread."""

MOST_PROPERTIES = 64
MOST_VALUES = 100
FEWEST_PER_VALUE = 3
"""A property whose values have fewer passages on average identifies passages and divides
nothing."""

CLUSTERS = (4, 6, 8, 12)
"""The numbers of clusters that are tried."""

PER_CLUSTER = 20
"""The minimum mean number of passages per cluster for a number of clusters to be tried."""

STARTS = 4
"""Runs of k-means for each number of clusters; the best run counts."""

SEED = 20261122

TERMS = 5
_NEVER = {"entities", "valid_from", "valid_to", *FILTERABLE, *TIMES} - {"section", "lang"}


@dataclass(frozen=True)
class PropertyProposal:
    """A property that could be a facet.

    `coverage` is the share of passages that have the property. `evenness` is the entropy of the
    property's values, divided by the maximum entropy. `separation` is the share of the variance of
    the passages' vectors that the values explain (adjusted R²): the part that a soft prior can use.
    """

    name: str
    values: tuple[tuple[str, int], ...]
    """The most frequent values, with their numbers of passages."""

    distinct: int
    coverage: float
    evenness: float
    separation: float

    @property
    def score(self) -> float:
        """Coverage times evenness; 1 is the best (complete coverage, equally frequent values)."""
        return self.coverage * self.evenness


@dataclass(frozen=True)
class ClusterProposal:
    """A cluster of similar passages: its distinctive terms, and example passages."""

    terms: tuple[str, ...]
    share: float
    examples: tuple[str, ...]
    """Chunk ids, the nearest to the cluster's centre first."""


@dataclass(frozen=True)
class Proposals:
    """The proposed facets, best first; `sampled` is the number of passages in the sample."""

    properties: tuple[PropertyProposal, ...]
    clusters: tuple[ClusterProposal, ...]
    sampled: int


def discover(
    ledger: Ledger, store: Store, collection: str, tenant: str, known: Collection[str]
) -> Proposals:
    """Propose new facets of a collection, in bounded time and memory.

    The proposals are of passages that the reader of the ledger may read.
    """
    scope = ledger, collection, tenant
    ids = read_consistently(*scope, lambda where: store.find_ids(collection, where, tenant=tenant))
    some = ids[:: max(1, -(-len(ids) // SAMPLE))]
    live = ledger.chunks.visible(some, collection=collection, tenant=tenant)
    sample = store.get_chunks(
        collection,
        [chunk_id for chunk_id in some if chunk_id in live],
        tenant=tenant,
        include_vector=True,
        include_terms=True,
    )
    # Names of properties that the reader may not read would take places of others.
    readable = {name for chunk in sample for name in chunk.properties}
    names = sorted(ledger.collections.property_names(collection) & readable - _NEVER - set(known))
    proposed = []
    for name in names[:MOST_PROPERTIES]:
        groups = read_consistently(*scope, partial(_groups, store, collection, tenant, name))
        proposal = judge(name, groups, len(ids), sample)
        if proposal is not None:
            proposed.append(proposal)
    ranked = sorted(proposed, key=lambda p: (-p.score, p.name))
    return Proposals(tuple(ranked), tuple(clusters(sample)), len(sample))


def _groups(
    store: Store, collection: str, tenant: str, name: str, where: Where | None
) -> list[tuple[Scalar, int]]:
    return store.aggregate_group_by(collection, name, where, tenant=tenant)


def judge(
    name: str, groups: Sequence[tuple[Scalar, int]], passages: int, sample: Sequence[StoredChunk]
) -> PropertyProposal | None:
    """Return the property with its counts; None if it has one value, too many values, or dates."""
    by_value: Counter[str] = Counter()
    for value, count in groups:
        if isinstance(value, str) and instant(value):
            return None
        by_value[label(name, value)] += count
    by_value.pop("", None)
    total = sum(by_value.values())
    if not 2 <= len(by_value) <= min(MOST_VALUES, total / FEWEST_PER_VALUE):
        return None
    shares = [count / total for count in by_value.values()]
    entropy = -sum(share * math.log(share) for share in shares)
    return PropertyProposal(
        name=name,
        values=tuple(by_value.most_common(TERMS)),
        distinct=len(by_value),
        coverage=round(min(1.0, total / max(passages, 1)), 4),
        evenness=round(entropy / math.log(len(by_value)), 4),
        separation=round(_separation(name, sample), 4),
    )


def clusters(sample: Sequence[StoredChunk]) -> list[ClusterProposal]:
    """Cluster the passages by k-means on unit vectors; large clusters first, small ones omitted.

    The number of clusters is the one with the best silhouette (Rousseeuw 1987). The same sample
    always gives the same clusters.
    """
    with_vector = [chunk for chunk in sample if chunk.vector is not None]
    sizes = [k for k in CLUSTERS if k * PER_CLUSTER <= len(with_vector)]
    if not sizes:
        return []
    points = _centred(np.stack([c.vector for c in with_vector if c.vector is not None]))
    labels, distances = _parted(points, sizes)
    count = distances.shape[1]
    terms = _distinctive([(c.terms or "").split() for c in with_vector], labels, count)
    proposals = []
    for i in range(count):
        (members,) = np.nonzero(labels == i)
        nearest = members[np.argsort(distances[members, i], kind="stable")][:3]
        examples = tuple(with_vector[j].chunk_id for j in nearest)
        proposals.append(ClusterProposal(terms[i], round(len(members) / len(labels), 4), examples))
    return sorted((p for p in proposals if p.examples), key=lambda p: (-p.share, p.terms))


def _separation(name: str, sample: Iterable[StoredChunk]) -> float:
    labelled = [
        (label(name, value), chunk.vector)
        for chunk in sample
        if chunk.vector is not None
        and isinstance(value := chunk.properties.get(name), str | float | int | bool)
    ]
    groups = sorted({value for value, _ in labelled})
    if len(groups) < 2 or len(labelled) <= len(groups):
        return 0.0
    points = np.stack([vector for _, vector in labelled])
    of = np.array([groups.index(value) for value, _ in labelled])
    total = float(((points - points.mean(0)) ** 2).sum())
    within = sum(float(((p - p.mean(0)) ** 2).sum()) for p in (points[of == i] for i in set(of)))
    free = (len(labelled) - 1) / (len(labelled) - len(groups))
    return max(0.0, 1 - within / total * free) if total else 0.0


def _centred(points: Vector) -> Vector:
    """Subtract the mean vector, which all texts share, and normalize the differences."""
    moved = points - points.mean(0)
    lengths = np.linalg.norm(moved, axis=1, keepdims=True)
    return np.asarray(moved / np.where(lengths, lengths, 1), np.float32)


def _parted(points: Vector, sizes: Sequence[int]) -> tuple[Any, Any]:
    """The best partition: the label of each point, and its distance to each centre.

    `points` has the shape (n, dimension), the labels (n,) and the distances (n, clusters).
    """
    # scikit-learn takes half a second to import; only a request for proposals needs it.
    from sklearn.cluster import KMeans
    from sklearn.metrics import silhouette_score

    distinct = len(np.unique(points, axis=0))
    partitions = []
    for k in sorted({min(k, distinct) for k in sizes}):
        model = KMeans(k, n_init=STARTS, random_state=SEED).fit(points)
        several = 1 < len(set(model.labels_)) < len(points)
        score = float(silhouette_score(points, model.labels_)) if several else -1.0
        partitions.append((score, model))
    _, best = max(partitions, key=lambda each: each[0])
    return best.labels_, best.transform(points)


def _distinctive(
    texts: Sequence[Sequence[str]], of: Vector, k: int
) -> Mapping[int, tuple[str, ...]]:
    """The terms of each cluster by class-based TF-IDF (Grootendorst 2022)."""
    counts: list[Counter[str]] = [Counter() for _ in range(k)]
    for terms, cluster in zip(texts, of, strict=True):
        counts[int(cluster)].update({t for t in terms if len(t) > 1 and not t.isdigit()})
    total: Counter[str] = Counter()
    for counted in counts:
        total.update(counted)
    average = sum(total.values()) / k
    terms_of = {}
    for i, counted in enumerate(counts):
        weighed = {t: n * math.log(1 + average / total[t]) for t, n in counted.items() if n > 1}
        terms_of[i] = tuple(sorted(weighed, key=lambda t: (-weighed[t], t))[:TERMS])
    return terms_of
