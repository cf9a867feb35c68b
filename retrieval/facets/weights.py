"""How much a question is about each value of each facet: weights in [0, 1], calibrated from data.

The cosines of an embedder are close together (e5 gives .7 to .9 for any two texts), so a cosine
alone is little evidence. With the cosines `s` of a question to the n values of a facet,

    p(v) = exp(s(v) / T) / Σ_u exp(s(u) / T)
    w(v) = max(0, (p(v) − 1/n) / (1 − 1/n)) · clip((s(v) − far) / (near − far), 0, 1)

The first factor is the part of p above chance: it is small if other values are as near. The second
factor is 0 for a question that is about none of the values. T, near and far are computed from
probes: sentences of chunks that are not part of the value's vector, embedded as questions. T is 1.5
times the temperature that maximizes the likelihood of the probes' own values (temperature scaling,
Guo et al. 2017); near and far are the mean cosines of probes to their own and to other values. For
a facet that is unrelated to the text, such as a random one, T grows without bound and w is 0.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from callslip.retrieval.caches import Watched
from callslip.stores.ledger.learning.facet_values import FacetScope, FacetValue, FacetValues
from callslip.stores.records import Vector

Weights = dict[str, dict[str, float]]
"""The weights above 0 by facet and value."""

WIDENED = 1.5
"""The factor of T: a question is farther from its value than a sentence of the corpus. At 1.0 the
prior cost up to .008 nDCG@10 on ko_autorag (facet: clusters of 8), at 1.5 at most .004 on any set
and facet."""

LEAST = 0.02
"""A smaller weight counts as 0."""

MIN_APART = 8
"""With at least this number of probes from separate documents, only these probes are used."""

MOST_PROBES = 1000

CHECK_SECONDS = 1.0
"""The interval in seconds between checks for changes in the ledger."""

_MOST_SCOPES = 64

_TEMPERATURES = np.geomspace(0.002, 2.0, 60)


@dataclass(frozen=True)
class Calibration:
    """The three numbers of the formula: T, near and far."""

    temperature: float
    near: float
    far: float

    def as_json(self) -> dict[str, float]:
        """The calibration as the ledger stores it."""
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
    """The facets of a collection that have a calibration, in the form that a search needs."""

    facets: tuple[Facet, ...]


def weights(query_vector: Vector, table: FacetTable, top_per_facet: int) -> Weights:
    """Return the weights of the values that the question is most about, best first.

    `query_vector` has length 1 and comes from the embedder of the facet vectors.
    """
    weights_of: Weights = {}
    for facet in table.facets:
        if facet.vectors.shape[1] != len(query_vector):
            continue
        cosines = facet.vectors @ query_vector
        weighed = weigh(cosines, facet.calibration)
        best = np.argsort(-weighed, kind="stable")[:top_per_facet]
        best_values = {facet.values[i]: float(weighed[i]) for i in best if weighed[i] >= LEAST}
        if best_values:
            weights_of[facet.name] = best_values
    return weights_of


def weigh(cosines: Vector, by: Calibration) -> Any:
    """The weight of each value of a facet, given its cosine: shape (n,)."""
    chance = 1 / len(cosines)
    raised = np.exp((cosines - cosines.max()) / by.temperature)
    beyond = (raised / raised.sum() - chance) / (1 - chance)
    nearness = (cosines - by.far) / (by.near - by.far)
    return np.clip(beyond, 0, 1) * np.clip(nearness, 0, 1)


def calibrate(values: Sequence[FacetValue]) -> Calibration | None:
    """Calibrate the formula for the values of one facet.

    Returns None if the values cannot be told apart: there are fewer than two values, there are no
    probes, or the probes are no nearer to their own value than to other values.
    """
    apart = sum(len(v.probes) for v in values if v.probes_apart)
    probes = [
        (i, probe)
        for i, value in enumerate(values)
        for probe in value.probes
        if value.probes_apart or apart < MIN_APART
    ][:: -(-sum(len(v.probes) for v in values) // MOST_PROBES) or 1]
    if len(values) < 2 or not probes:
        return None
    owner = np.array([i for i, _ in probes])
    rows = np.arange(len(owner))
    cosines = np.stack([probe for _, probe in probes]) @ np.stack([v.vector for v in values]).T
    own = cosines[rows, owner]
    near = float(own.mean())
    far = float((cosines.sum(1) - own).mean() / (len(values) - 1))
    if near <= far:
        return None
    likeliest = max(_TEMPERATURES, key=lambda t: _likelihood(cosines / t, rows, owner))
    return Calibration(round(WIDENED * float(likeliest), 6), round(near, 6), round(far, 6))


def _likelihood(scaled: Any, rows: Any, owner: Any) -> float:
    """The log-likelihood of the probes' own values."""
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
"""The versions of the facets, and the embedder's model."""


class FacetTables:
    """A search worker's cache of facet tables; reloads a table if the ledger's version changed.

    Threads may share it. Each scope (collection and tenant) is checked by one short read a second.
    """

    def __init__(
        self, ledger: FacetValues, names: Iterable[str], *, check_seconds: float = CHECK_SECONDS
    ) -> None:
        """`names` are the names of the active facets; other facets are not read."""
        self._ledger = ledger
        self._names = tuple(names)
        self._tables = Watched[_State, FacetTable](_MOST_SCOPES, check_seconds)

    def of(
        self, collection: str, tenant: str, model: str, more: tuple[str, ...] = ()
    ) -> FacetTable | None:
        """The table of a collection or tenant; None if it has no calibrated facet.

        `model` is the embedder's name; vectors of another model are ignored. `more` are further
        facets of the collection.
        """
        at = FacetScope(collection, tenant)
        names = self._names + more
        table = self._tables.get(
            (at, more),
            lambda: (self._ledger.stamps(at), model),
            lambda _: self._read(at, model, names),
        )
        return table if table.facets else None

    def _read(self, at: FacetScope, model: str, names: tuple[str, ...]) -> FacetTable:
        values_of = {}
        for build in self._ledger.builds(at):
            if build.facet in names and build.calibration is not None:
                values = [v for v in self._ledger.values(at, build.facet) if v.model == model]
                values_of[build.facet] = values, Calibration(**build.calibration)
        return make_table(values_of)
