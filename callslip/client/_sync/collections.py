"""Methods for collections, their tenants, options, facets and ranking."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from callslip.client import models
from callslip.client._sync.transport import Transport
from callslip.client.requests import path_of, plain, without_none
from callslip.vocabulary import Metric, ProposalState, StoreKind, Vectors


class Collections(Transport):
    """The endpoints for collections."""

    def list_collections(self) -> models.Collections:
        """List all collections by name."""
        return self._request_model(models.Collections, "GET", "/v1/collections")

    def create_collection(
        self,
        name: str,
        *,
        store: StoreKind | None = None,
        metric: Metric | None = None,
        tenants: bool | None = None,
        vectors: Mapping[str, str | Mapping[str, str]] | None = None,
        options: models.Options | Mapping[str, Any] | None = None,
    ) -> models.Collection:
        """Create a collection, or return the equal one; CollectionExists if they differ.

        `vectors` maps names of further vectors to embedders of the server's settings, each the
        embedder's name or `{"embedder": …, "metric": …}`.
        """
        named = vectors and {
            n: {"embedder": v} if isinstance(v, str) else v for n, v in vectors.items()
        }
        body = without_none(
            name=name, store=store, metric=metric, tenants=tenants, vectors=named, options=options
        )
        return self._request_model(
            models.Collection, "POST", "/v1/collections", json=body, repeatable=True
        )

    def attach_table(
        self,
        name: str,
        table: str | None = None,
        *,
        chroma: Mapping[str, Any] | None = None,
        vectors: Vectors | None = None,
    ) -> models.Collection:
        """Create a collection over a table in CrateDB or one in Chroma, which is only read.

        `chroma`, instead of `table`, has the `url` of the server and the `collection` there, and
        perhaps its `tenant` and `database`. `vectors` is `ours` if this installation's embedder
        made the vectors, `previous` if its previous embedder did.
        """
        body = without_none(name=name, table=table, chroma=chroma, vectors=vectors)
        return self._request_model(
            models.Collection, "POST", "/v1/attachments", json=body, repeatable=True
        )

    def set_options(
        self, collection: str, options: models.Options | Mapping[str, Any]
    ) -> models.Options:
        """Replace the options of a collection; an option that is not set has its default."""
        path = path_of("/v1/collections/{collection}/options", collection=collection)
        return self._request_model(models.Options, "PUT", path, json=plain(options))

    def delete_collection(self, collection: str) -> models.CollectionDeleted:
        """Delete a collection: it is hidden at once, and a worker removes it."""
        path = path_of("/v1/collections/{collection}", collection=collection)
        return self._request_model(models.CollectionDeleted, "DELETE", path)

    def list_receipts(self, collection: str) -> models.Receipts:
        """List the receipts of deletions in a collection; they outlive the collection."""
        path = path_of("/v1/collections/{collection}/receipts", collection=collection)
        return self._request_model(models.Receipts, "GET", path)

    def list_tenants(self, collection: str) -> models.Tenants:
        """List all tenants by name."""
        path = path_of("/v1/collections/{collection}/tenants", collection=collection)
        return self._request_model(models.Tenants, "GET", path)

    def create_tenant(self, collection: str, tenant: str) -> models.Tenant:
        """Create a tenant, or return the existing one."""
        path = path_of("/v1/collections/{collection}/tenants", collection=collection)
        body = without_none(tenant=tenant)
        return self._request_model(models.Tenant, "POST", path, json=body, repeatable=True)

    def delete_tenant(self, collection: str, tenant: str) -> models.Tenant:
        """Delete a tenant: its documents are hidden at once, and a worker removes them."""
        path = path_of(
            "/v1/collections/{collection}/tenants/{tenant}", collection=collection, tenant=tenant
        )
        return self._request_model(models.Tenant, "DELETE", path)

    def rebuild_facets(
        self, collection: str, *, facet: str | None = None, tenant: str | None = None
    ) -> models.FacetsAsked:
        """Order a rebuild of the vectors of facet values."""
        path = path_of("/v1/collections/{collection}/facets/rebuild", collection=collection)
        body = without_none(facet=facet, tenant=tenant)
        return self._request_model(models.FacetsAsked, "POST", path, json=body)

    def list_facets(
        self,
        collection: str,
        *,
        tenant: str | None = None,
        facet: str | None = None,
        limit: int | None = None,
    ) -> models.Facets:
        """List the facets with their last rebuild, and at most `limit` values of each."""
        path = path_of("/v1/collections/{collection}/facets", collection=collection)
        params = without_none(tenant=tenant, facet=facet, limit=limit)
        return self._request_model(models.Facets, "GET", path, params=params)

    def propose_facets(
        self, collection: str, *, tenant: str | None = None
    ) -> models.FacetProposals:
        """Get proposals of facets: properties and clusters of passages."""
        path = path_of("/v1/collections/{collection}/facets/proposals", collection=collection)
        return self._request_model(
            models.FacetProposals, "GET", path, params=without_none(tenant=tenant)
        )

    def count_by(
        self,
        collection: str,
        by: str,
        *,
        tenant: str | None = None,
        having_all: Mapping[str, Any] | None = None,
        having_any: Mapping[str, Any] | None = None,
        limit: int | None = None,
    ) -> models.PropertyCounts:
        """Count passages and documents by the values of a property, under a filter."""
        path = path_of("/v1/collections/{collection}/counts", collection=collection)
        body = without_none(
            by=by, tenant=tenant, having_all=having_all, having_any=having_any, limit=limit
        )
        return self._request_model(models.PropertyCounts, "POST", path, json=body, repeatable=True)

    def list_proposals(
        self, collection: str, *, state: ProposalState | None = None, limit: int | None = None
    ) -> models.ProposalsMessage:
        """List runs that looked for better weights and further facets, with their proposals."""
        path = path_of("/v1/collections/{collection}/proposals", collection=collection)
        return self._request_model(
            models.ProposalsMessage, "GET", path, params=without_none(state=state, limit=limit)
        )

    def decide_proposal(
        self, collection: str, proposal_id: str, decision: Literal["accept", "decline"]
    ) -> models.ProposalMessage:
        """Apply a proposal to the options of a collection, or decline it."""
        path = path_of(
            "/v1/collections/{collection}/proposals/{proposal_id}",
            collection=collection,
            proposal_id=proposal_id,
        )
        return self._request_model(
            models.ProposalMessage, "POST", path, json={"decision": decision}, repeatable=True
        )

    def show_ranking(self, collection: str) -> models.RankingMessage:
        """Get the ranking parameters of a collection."""
        path = path_of("/v1/collections/{collection}/ranking", collection=collection)
        return self._request_model(models.RankingMessage, "GET", path)
