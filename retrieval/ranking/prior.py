"""The soft prior: a small bonus for chunks whose facet values match the question."""

from collections.abc import Mapping

from callslip.retrieval.facets.texts import label
from callslip.retrieval.facets.weights import Weights

CAP = 1.0
"""The upper bound of the sum over facets, so that the bonus is at most `weight`."""


def prior(properties: Mapping[str, object], weights: Weights, weight: float) -> float:
    """`weight · min(1, Σ_facet w(facet = the chunk's value))`, in [0, weight].

    `properties` has the filterable properties of the chunk (`Store.properties`), by facet name. If
    a property is a list, the value with the greatest weight counts. The result is 0.0 if `weight`
    is 0 or no facet value has a weight, so the score does not change.
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
