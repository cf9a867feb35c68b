"""Requests and responses of the API about facets."""

from typing import Any

from pydantic import BaseModel, Field

from callslip.api.messages.documents import Request
from callslip.messages.facets import Facet as Facet
from callslip.messages.facets import FacetProposals as FacetProposals
from callslip.messages.facets import Facets as Facets
from callslip.messages.facets import FacetsAsked as FacetsAsked
from callslip.messages.facets import FacetValue as FacetValue
from callslip.messages.facets import PropertyCounts as PropertyCounts
from callslip.messages.facets import ProposedCluster as ProposedCluster
from callslip.messages.facets import ProposedProperty as ProposedProperty
from callslip.messages.facets import ValueCount as ValueCount
from callslip.messages.values import Whole
from callslip.stores import naming


class RebuildFacets(Request):
    """Selects the facets to build."""

    facet: str = Field("all", max_length=128, description="one of the settings' facets, or `all`")
    tenant: naming.Tenant | None = Field(
        None, description="the tenant, in a collection with tenants"
    )


class FacetsQuery(BaseModel):
    """Selects facets."""

    tenant: naming.Tenant | None = Field(
        None, description="the tenant, in a collection with tenants"
    )
    facet: str | None = Field(None, max_length=128, description="only this facet")
    limit: Whole = Field(
        20, ge=0, le=10_000, description="values per facet, the most frequent first"
    )


class ProposalsQuery(BaseModel):
    """Selects the tenant of the proposals."""

    tenant: naming.Tenant | None = Field(
        None, description="the tenant, in a collection with tenants"
    )


class CountBy(Request):
    """Selects the passages to count, and the property by whose values."""

    by: str = Field(
        min_length=1,
        max_length=128,
        description="a filterable property, such as `doc_type`, `section` or `lang`",
    )
    tenant: naming.Tenant | None = Field(
        None, description="the tenant, in a collection with tenants"
    )
    having_all: dict[str, Any] | None = Field(
        None, description="conditions that must all be true, as in a search (docs/filters.md)"
    )
    having_any: dict[str, Any] | None = Field(
        None, description="conditions of which at least one must be true"
    )
    limit: int = Field(20, ge=1, le=200, description="values, the most frequent first")
