"""Collections, their tenants, options and facets."""

from collections.abc import Mapping
from typing import Any

from callslip.client import models
from callslip.client._async.transport import AsyncTransport
from callslip.client.wire import given, path_of, plain
from callslip.client.words import Metric, Store, Vectors


class Collections(AsyncTransport):
    """What is done with collections."""

    async def list_collections(self) -> models.Collections:
        """Every collection, by name."""
        return await self._asked(models.Collections, "GET", "/v1/collections")

    async def create_collection(
        self,
        name: str,
        *,
        store: Store | None = None,
        metric: Metric | None = None,
        tenants: bool | None = None,
        options: models.Options | Mapping[str, Any] | None = None,
    ) -> models.Collection:
        """Make a collection, or find it as it is; CollectionExists where it is another one."""
        body = given(name=name, store=store, metric=metric, tenants=tenants, options=options)
        return await self._asked(
            models.Collection, "POST", "/v1/collections", json=body, repeatable=True
        )

    async def attach_table(
        self, name: str, table: str, *, vectors: Vectors | None = None
    ) -> models.Collection:
        """Make a collection of a table in CrateDB that others made; it is only read.

        `vectors` is `ours` where this installation's embedder made them.
        """
        body = given(name=name, table=table, vectors=vectors)
        return await self._asked(
            models.Collection, "POST", "/v1/attachments", json=body, repeatable=True
        )

    async def set_options(
        self, collection: str, options: models.Options | Mapping[str, Any]
    ) -> models.Options:
        """Change what is found out about its documents from now on; what is unset is as usual."""
        path = path_of("/v1/collections/{collection}/options", collection=collection)
        return await self._asked(models.Options, "PUT", path, json=plain(options))

    async def delete_collection(self, collection: str) -> models.CollectionDeleted:
        """Hide it at once and remove it soon."""
        path = path_of("/v1/collections/{collection}", collection=collection)
        return await self._asked(models.CollectionDeleted, "DELETE", path)

    async def list_receipts(self, collection: str) -> models.Receipts:
        """What deletions of the collection and its tenants removed; stays when it is gone."""
        path = path_of("/v1/collections/{collection}/receipts", collection=collection)
        return await self._asked(models.Receipts, "GET", path)

    async def list_tenants(self, collection: str) -> models.Tenants:
        """Every tenant, by name."""
        path = path_of("/v1/collections/{collection}/tenants", collection=collection)
        return await self._asked(models.Tenants, "GET", path)

    async def create_tenant(self, collection: str, tenant: str) -> models.Tenant:
        """Make a tenant, or find it as it is."""
        path = path_of("/v1/collections/{collection}/tenants", collection=collection)
        body = given(tenant=tenant)
        return await self._asked(models.Tenant, "POST", path, json=body, repeatable=True)

    async def delete_tenant(self, collection: str, tenant: str) -> models.Tenant:
        """Hide a tenant with its documents at once and remove them soon."""
        path = path_of(
            "/v1/collections/{collection}/tenants/{tenant}", collection=collection, tenant=tenant
        )
        return await self._asked(models.Tenant, "DELETE", path)

    async def rebuild_facets(
        self, collection: str, *, facet: str | None = None, tenant: str | None = None
    ) -> models.FacetsAsked:
        """Have the vectors of facet values built anew."""
        path = path_of("/v1/collections/{collection}/facets/rebuild", collection=collection)
        body = given(facet=facet, tenant=tenant)
        return await self._asked(models.FacetsAsked, "POST", path, json=body)

    async def list_facets(
        self,
        collection: str,
        *,
        tenant: str | None = None,
        facet: str | None = None,
        limit: int | None = None,
    ) -> models.Facets:
        """The facets with their values, as many as `limit` of each, and their last rebuild."""
        path = path_of("/v1/collections/{collection}/facets", collection=collection)
        params = given(tenant=tenant, facet=facet, limit=limit)
        return await self._asked(models.Facets, "GET", path, params=params)

    async def propose_facets(
        self, collection: str, *, tenant: str | None = None
    ) -> models.FacetProposals:
        """Properties and clusters that could be facets."""
        path = path_of("/v1/collections/{collection}/facets/proposals", collection=collection)
        return await self._asked(models.FacetProposals, "GET", path, params=given(tenant=tenant))

    async def show_ranking(self, collection: str) -> models.RankingMessage:
        """The numbers that its searches go by."""
        path = path_of("/v1/collections/{collection}/ranking", collection=collection)
        return await self._asked(models.RankingMessage, "GET", path)
