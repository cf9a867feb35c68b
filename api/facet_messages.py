"""What the desk takes and gives about facets."""

from pydantic import BaseModel, Field

from api.messages import FailureMessage, Request
from stores import naming


class RebuildFacets(Request):
    """Facets to build."""

    facet: str = Field("all", max_length=128, description="one of the settings' facets, or `all`")
    tenant: naming.Tenant | None = Field(None, description="whose, in a collection with tenants")


class FacetsAsked(BaseModel):
    """A rebuild that waits for a worker."""

    run: str = Field(description="`run` of these facets once it is at work")
    facets: list[str]


class FacetsQuery(BaseModel):
    """Which facets."""

    tenant: naming.Tenant | None = Field(None, description="whose, in a collection with tenants")
    facet: str | None = Field(None, max_length=128, description="only this one")
    limit: int = Field(20, ge=0, le=10_000, description="values of each, the most frequent")


class ProposalsQuery(BaseModel):
    """Whose facets."""

    tenant: naming.Tenant | None = Field(None, description="whose, in a collection with tenants")


class FacetValue(BaseModel):
    """A value that has a vector."""

    value: str
    chunks: int = Field(description="passages that carried it at the last rebuild")
    aliases: list[str]
    description: str
    updated_at: float


class Facet(BaseModel):
    """A facet of a collection and its last rebuild."""

    name: str
    run: str
    began_at: float
    ended_at: float | None = Field(description="null while it is being rebuilt")
    counts: dict[str, int] = Field(
        description="`made`, `unchanged`, `gone`, `left_out`, and `values` in all"
    )
    calibration: dict[str, float] | None = Field(
        description="of the weights (docs/facets.md); null where no value can be told from another"
    )
    error: FailureMessage | None
    values: list[FacetValue]


class Facets(BaseModel):
    """The facets of a collection, by name."""

    facets: list[Facet]


class ProposedProperty(BaseModel):
    """A property that could be a facet."""

    name: str
    distinct: int = Field(description="how many values it has")
    values: dict[str, int] = Field(description="the most frequent, with their passages")
    coverage: float = Field(description="share of passages that have it")
    evenness: float = Field(description="entropy over the values, by the greatest possible")
    separation: float = Field(description="share of the vectors' variance that it explains")
    score: float


class ProposedCluster(BaseModel):
    """Passages that are alike."""

    terms: list[str] = Field(description="analyzed terms that tell it from the others")
    share: float
    examples: list[str] = Field(description="ids of passages, the most typical first")


class FacetProposals(BaseModel):
    """What could be facets, the best first."""

    properties: list[ProposedProperty]
    clusters: list[ProposedCluster]
    sampled: int
