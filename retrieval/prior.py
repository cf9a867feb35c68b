"""The soft prior: a small bonus for chunks of what a question is about, never a filter."""

from collections.abc import Mapping

from retrieval.facet_texts import label
from retrieval.facet_weights import Weights

CAP = 1.0
"""Of the sum over facets: a chunk that all facets favour gets no more than `weight`."""


def prior(properties: Mapping[str, object], weights: Weights, weight: float) -> float:
    """`weight · min(1, Σ_facet w(facet = the chunk's value))`, in [0, weight].

    `properties` are those that filters see (`Store.properties`), under the names of the facets; of
    a property that is a list the best value counts. 0.0 where `weight` is 0 or nothing is weighed,
    so that adding it changes no score.
    """
    if not weight:
        return 0.0
    total = sum(
        max((values.get(label(facet, v), 0.0) for v in _listed(properties[facet])), default=0.0)
        for facet, values in weights.items()
        if facet in properties
    )
    return weight * min(CAP, total)


def _listed(value: object) -> list[str | float | int | bool]:
    members = value if isinstance(value, list) else [value]
    return [v for v in members if isinstance(v, str | float | int | bool)]
