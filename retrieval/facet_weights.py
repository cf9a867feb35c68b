"""How much a question is about each value of each facet: weights in [0, 1], calibrated from data.

The cosines of an embedder lie close together (of e5 between .7 and .9, whatever is compared), so
that they say little by themselves. With the cosines `s` of a question to the n values of a facet,

    p(v) = exp(s(v) / T) / Σ_u exp(s(u) / T)
    w(v) = max(0, (p(v) − 1/n) / (1 − 1/n)) · clip((s(v) − far) / (near − far), 0, 1)

The first factor is what p says beyond chance: one value cannot be told from others that are as
near. The second keeps out a question that is about none of them. T, near and far come from
probes, sentences of chunks that the value's vector was not made of, embedded as questions: T is
1.5 times the temperature under which the probes' own values are likeliest (temperature scaling,
Guo et al. 2017), near and far are the mean cosines of probes to their own and to other values. Of a
facet that says nothing about the text, such as a random one, T grows without bound and w is 0.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from retrieval.caches import Watched
from stores.ledger.facet_values import FacetPlace, FacetValue, FacetValues
from stores.records import Vector

Weights = dict[str, dict[str, float]]
"""By facet and value; only those above 0."""

WIDENED = 1.5
"""A question is farther from its value than a sentence of the corpus. At 1.0 the prior cost up to
.008 nDCG@10 on ko_autorag (facet: clusters of 8), at 1.5 at most .004 on any set and facet."""

LEAST = 0.02
"""A smaller weight is none."""

MIN_APART = 8
"""So many probes of other documents than the samples are enough to leave the others out."""

MOST_PROBES = 1000

CHECK_SECONDS = 1.0
"""How often it is looked whether the ledger has something new."""

_PLACES = 64

_TEMPERATURES = np.geomspace(0.002, 2.0, 60)


@dataclass(frozen=True)
class Calibration:
    """The three numbers of the formula."""

    temperature: float
    near: float
    far: float

    def as_json(self) -> dict[str, float]:
        """As the ledger keeps it."""
        return asdict(self)


@dataclass(frozen=True)
class Facet:
    """The values of a facet and their vectors, shape (len(values), d)."""

    name: str
    values: tuple[str, ...]
    vectors: Vector
    calibration: Calibration


@dataclass(frozen=True)
class FacetTable:
    """The facets of a collection that can be told apart, as a search needs them."""

    facets: tuple[Facet, ...]


def weights(query_vector: Vector, table: FacetTable, top_per_facet: int) -> Weights:
    """The weights of the values that a question is most about, the best first.

    `query_vector` has length 1 and the embedder of the vectors; others are compared with nothing.
    """
    found: Weights = {}
    for facet in table.facets:
        if facet.vectors.shape[1] != len(query_vector):
            continue
        cosines = facet.vectors @ query_vector
        weighed = weigh(cosines, facet.calibration)
        best = np.argsort(-weighed, kind="stable")[:top_per_facet]
        kept = {facet.values[i]: float(weighed[i]) for i in best if weighed[i] >= LEAST}
        if kept:
            found[facet.name] = kept
    return found


def weigh(cosines: Vector, by: Calibration) -> Any:
    """The weight of each value of a facet, given its cosine: shape (n,)."""
    chance = 1 / len(cosines)
    raised = np.exp((cosines - cosines.max()) / by.temperature)
    beyond = (raised / raised.sum() - chance) / (1 - chance)
    nearness = (cosines - by.far) / (by.near - by.far)
    return np.clip(beyond, 0, 1) * np.clip(nearness, 0, 1)


def calibrate(values: Sequence[FacetValue]) -> Calibration | None:
    """The numbers of the formula for the values of one facet.

    None where no value can be told from another: fewer than two, no probes, or probes that are no
    nearer to their own value than to others.
    """
    apart = sum(len(v.probes) for v in values if v.probes_apart)
    held = [
        (i, probe)
        for i, value in enumerate(values)
        for probe in value.probes
        if value.probes_apart or apart < MIN_APART
    ][:: -(-sum(len(v.probes) for v in values) // MOST_PROBES) or 1]
    if len(values) < 2 or not held:
        return None
    owner = np.array([i for i, _ in held])
    rows = np.arange(len(owner))
    cosines = np.stack([probe for _, probe in held]) @ np.stack([v.vector for v in values]).T
    own = cosines[rows, owner]
    near = float(own.mean())
    far = float((cosines.sum(1) - own).mean() / (len(values) - 1))
    if near <= far:
        return None
    likeliest = max(_TEMPERATURES, key=lambda t: _likelihood(cosines / t, rows, owner))
    return Calibration(round(WIDENED * float(likeliest), 6), round(near, 6), round(far, 6))


def _likelihood(scaled: Any, rows: Any, owner: Any) -> float:
    """Log-likelihood of the probes' own values."""
    shifted = scaled - scaled.max(1, keepdims=True)
    return float((shifted[rows, owner] - np.log(np.exp(shifted).sum(1))).sum())


def make_table(facets: Mapping[str, tuple[Sequence[FacetValue], Calibration | None]]) -> FacetTable:
    """The table of facets, each with its values and its calibration."""
    return FacetTable(
        tuple(
            Facet(name, tuple(v.value for v in values), np.stack([v.vector for v in values]), by)
            for name, (values, by) in facets.items()
            if by is not None and len(values) > 1
        )
    )


_State = tuple[Mapping[str, str], str]
"""The stamps of the facets, and the embedder's model."""


class FacetTables:
    """The tables of a search worker, read from the ledger and again when its stamps change.

    Threads may share it. One short read for a place and second tells of changes.
    """

    def __init__(
        self, ledger: FacetValues, names: Iterable[str], *, check_seconds: float = CHECK_SECONDS
    ) -> None:
        """`names` of the facets that count; the others are not read."""
        self._ledger = ledger
        self._names = tuple(names)
        self._tables = Watched[_State, FacetTable](_PLACES, check_seconds)

    def of(self, collection: str, tenant: str, model: str) -> FacetTable | None:
        """The table of a collection, or a tenant; None where it has no facet to tell apart.

        `model` is the embedder's: vectors of another are as good as none.
        """
        at = FacetPlace(collection, tenant)
        table = self._tables.get(
            at, lambda: (self._ledger.stamps(at), model), lambda _: self._read(at, model)
        )
        return table if table.facets else None

    def _read(self, at: FacetPlace, model: str) -> FacetTable:
        found = {}
        for build in self._ledger.builds(at):
            if build.facet in self._names and build.calibration is not None:
                values = [v for v in self._ledger.values(at, build.facet) if v.model == model]
                found[build.facet] = values, Calibration(**build.calibration)
        return make_table(found)
