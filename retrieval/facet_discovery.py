"""Proposing facets: properties that divide a collection well, and clusters of its passages.

Only proposes: nothing is set. A property becomes a facet by `facets.names` in the settings, a
cluster by a rule that sets a property (docs/enrichment.md).
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from retrieval.facet_texts import label
from stores.contract import Store
from stores.filters import Where, instant
from stores.ledger import Ledger
from stores.levels import PASSAGES
from stores.records import FILTERABLE, Scalar, StoredChunk, Vector

SAMPLE = 1000
"""Passages that are looked at, spread evenly over the ids, which are hashes."""

MOST_PROPERTIES = 64
MOST_VALUES = 100
FEWEST_PER_VALUE = 3
"""A property whose values have fewer passages on average names them, and divides nothing."""

CLUSTERS = (4, 6, 8, 12)
"""Numbers of clusters that are tried."""

PER_CLUSTER = 20
"""Passages of a cluster on average, at least, for it to be tried."""

TERMS = 5
_STEPS = 25
_NEVER = {"entities", "valid_from", "valid_to", *FILTERABLE} - {"section", "lang"}


@dataclass(frozen=True)
class PropertyProposal:
    """A property that could be a facet.

    `coverage` is the share of passages that have it; `evenness` their entropy over its values, by
    the greatest that there could be; `separation` how much of the variance of the passages'
    vectors its values explain (adjusted R²): what a soft prior can use.
    """

    name: str
    values: tuple[tuple[str, int], ...]
    """The most frequent ones, with their passages."""

    distinct: int
    coverage: float
    evenness: float
    separation: float

    @property
    def score(self) -> float:
        """Coverage times evenness: 1 where every passage has it and all values are as frequent."""
        return self.coverage * self.evenness


@dataclass(frozen=True)
class ClusterProposal:
    """Passages that are alike: the terms that tell them from the others, and one of them each."""

    terms: tuple[str, ...]
    share: float
    examples: tuple[str, ...]
    """Chunk ids, the nearest to its centre first."""


@dataclass(frozen=True)
class Proposals:
    """What could be facets, the best first; `sampled` passages were looked at."""

    properties: tuple[PropertyProposal, ...]
    clusters: tuple[ClusterProposal, ...]
    sampled: int


def discover(
    ledger: Ledger, store: Store, collection: str, tenant: str, known: Collection[str]
) -> Proposals:
    """Propose facets of a collection beside those that are known. Bounded in time and memory."""
    ids = store.find_ids(collection, Where(every=(PASSAGES,)), tenant=tenant)
    some = ids[:: max(1, -(-len(ids) // SAMPLE))]
    live = ledger.chunks.visible(some, collection=collection, tenant=tenant)
    sample = store.get_chunks(
        collection,
        [chunk_id for chunk_id in some if chunk_id in live],
        tenant=tenant,
        include_vector=True,
        include_terms=True,
    )
    names = sorted(ledger.collections.property_names(collection) - _NEVER - set(known))
    found = []
    for name in names[:MOST_PROPERTIES]:
        groups = store.aggregate_group_by(collection, name, Where(every=(PASSAGES,)), tenant=tenant)
        proposal = judge(name, groups, len(ids), sample)
        if proposal is not None:
            found.append(proposal)
    ranked = sorted(found, key=lambda p: (-p.score, p.name))
    return Proposals(tuple(ranked), tuple(clusters(sample)), len(sample))


def judge(
    name: str, groups: Sequence[tuple[Scalar, int]], passages: int, sample: Sequence[StoredChunk]
) -> PropertyProposal | None:
    """A property with its counts; None where it divides nothing: one value, too many, days."""
    counted: Counter[str] = Counter()
    for value, count in groups:
        if isinstance(value, str) and instant(value):
            return None
        counted[label(name, value)] += count
    counted.pop("", None)
    held = sum(counted.values())
    if not 2 <= len(counted) <= min(MOST_VALUES, held / FEWEST_PER_VALUE):
        return None
    shares = [count / held for count in counted.values()]
    entropy = -sum(share * math.log(share) for share in shares)
    return PropertyProposal(
        name=name,
        values=tuple(counted.most_common(TERMS)),
        distinct=len(counted),
        coverage=round(min(1.0, held / max(passages, 1)), 4),
        evenness=round(entropy / math.log(len(counted)), 4),
        separation=round(_separation(name, sample), 4),
    )


def clusters(sample: Sequence[StoredChunk]) -> list[ClusterProposal]:
    """Clusters of passages by spherical k-means, the largest first; none where there are too few.

    The number of clusters is the one of the best simplified silhouette (Hruschka et al. 2004).
    """
    with_vector = [chunk for chunk in sample if chunk.vector is not None]
    tried = [k for k in CLUSTERS if k * PER_CLUSTER <= len(with_vector)]
    if not tried:
        return []
    points = _centred(np.stack([c.vector for c in with_vector if c.vector is not None]))
    parted = [_k_means(points, k) for k in tried]
    centres = max(parted, key=lambda found: _silhouette(points @ found.T))
    nearness = points @ centres.T
    of = nearness.argmax(1)
    told = _distinctive([(c.terms or "").split() for c in with_vector], of, len(centres))
    proposals = []
    for i in range(len(centres)):
        (members,) = np.nonzero(of == i)
        nearest = members[np.argsort(-nearness[members, i], kind="stable")][:3]
        examples = tuple(with_vector[j].chunk_id for j in nearest)
        proposals.append(ClusterProposal(told[i], round(len(members) / len(of), 4), examples))
    return sorted((p for p in proposals if p.examples), key=lambda p: (-p.share, p.terms))


def _separation(name: str, sample: Iterable[StoredChunk]) -> float:
    held = [
        (label(name, value), chunk.vector)
        for chunk in sample
        if chunk.vector is not None
        and isinstance(value := chunk.properties.get(name), str | float | int | bool)
    ]
    groups = sorted({value for value, _ in held})
    if len(groups) < 2 or len(held) <= len(groups):
        return 0.0
    points = np.stack([vector for _, vector in held])
    of = np.array([groups.index(value) for value, _ in held])
    total = float(((points - points.mean(0)) ** 2).sum())
    within = sum(float(((p - p.mean(0)) ** 2).sum()) for p in (points[of == i] for i in set(of)))
    free = (len(held) - 1) / (len(held) - len(groups))
    return max(0.0, 1 - within / total * free) if total else 0.0


def _centred(points: Vector) -> Vector:
    """Directions from the mean: what all texts have in common says nothing of any."""
    moved = points - points.mean(0)
    lengths = np.linalg.norm(moved, axis=1, keepdims=True)
    return np.asarray(moved / np.where(lengths, lengths, 1), np.float32)


def _k_means(points: Vector, k: int) -> Vector:
    """Centres, rows of length 1; begun at points far from each other, so always the same."""
    chosen = [0]
    for _ in range(k - 1):
        chosen.append(int((points @ points[chosen].T).max(1).argmin()))
    centres = points[chosen]
    for _ in range(_STEPS):
        of = (points @ centres.T).argmax(1)
        sums = np.stack([points[of == i].sum(0) for i in range(k)])
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        moved = np.where(lengths > 0, sums / np.where(lengths > 0, lengths, 1), centres)
        if np.allclose(moved, centres, atol=1e-6):
            break
        centres = moved.astype(np.float32)
    return centres


def _silhouette(nearness: Vector) -> float:
    """How much nearer points are to their own centre than to the next, by the farther of both."""
    ordered = 1 - np.sort(nearness, axis=1)
    own, other = ordered[:, -1], ordered[:, -2]
    return float(((other - own) / np.maximum(other, 1e-9)).mean())


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
    told = {}
    for i, counted in enumerate(counts):
        weighed = {t: n * math.log(1 + average / total[t]) for t, n in counted.items() if n > 1}
        told[i] = tuple(sorted(weighed, key=lambda t: (-weighed[t], t))[:TERMS])
    return told
