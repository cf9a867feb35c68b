"""Facets of a collection."""

from pydantic import Field

from callslip.messages.base import Message
from callslip.messages.problems import FailureMessage


class FacetsAsked(Message):
    """A rebuild that waits for a worker."""

    run: str = Field(description="`run` of these facets after the rebuild has started")
    facets: list[str]


class FacetValue(Message):
    """A value that has a vector."""

    value: str
    chunks: int = Field(description="passages with this value at the last rebuild")
    aliases: list[str]
    description: str
    updated_at: float


class Facet(Message):
    """A facet of a collection and its last rebuild."""

    name: str
    run: str
    began_at: float
    ended_at: float | None = Field(description="null during the rebuild")
    counts: dict[str, int] = Field(
        description="`made`, `unchanged`, `gone`, `left_out`, and `values` in all"
    )
    calibration: dict[str, float] | None = Field(
        description="of the weights (docs/facets.md); null if no two values can be distinguished"
    )
    error: FailureMessage | None
    values: list[FacetValue]


class Facets(Message):
    """The facets of a collection, by name."""

    facets: list[Facet]


class ValueCount(Message):
    """A value of a property with its counts."""

    value: str | bool | int | float
    chunks: int = Field(description="passages with this value")
    documents: int = Field(description="documents with such a passage")


class PropertyCounts(Message):
    """Passages and documents by the values of a property, the most frequent value first."""

    by: str
    values: list[ValueCount]
    distinct: int = Field(description="number of all values")
    chunks: int = Field(description="passages that match, with and without the property")
    documents: int = Field(description="documents of these passages")


class ProposedProperty(Message):
    """A property that could be a facet."""

    name: str
    distinct: int = Field(description="number of its values")
    values: dict[str, int] = Field(description="the most frequent values with passage counts")
    coverage: float = Field(description="share of the passages that have the property")
    evenness: float = Field(description="entropy over the values, divided by the maximum")
    separation: float = Field(description="share of the vectors' variance that it explains")
    score: float


class ProposedCluster(Message):
    """Similar passages."""

    terms: list[str] = Field(description="analyzed terms that the other clusters lack")
    share: float
    examples: list[str] = Field(description="ids of passages, the most typical first")


class FacetProposals(Message):
    """Proposals of facets, the best first."""

    properties: list[ProposedProperty]
    clusters: list[ProposedCluster]
    sampled: int
