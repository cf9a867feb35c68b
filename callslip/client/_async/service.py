"""Methods for webhooks, usage, health and metrics of the server."""

from __future__ import annotations

from callslip.client import models
from callslip.client._async.transport import AsyncTransport
from callslip.client.requests import path_of, without_none
from callslip.vocabulary import DeliveryState, EventKind


class Service(AsyncTransport):
    """The endpoints that belong to no collection."""

    async def list_webhooks(self) -> models.Webhooks:
        """List all webhooks, oldest first."""
        return await self._request_model(models.Webhooks, "GET", "/v1/webhooks")

    async def create_webhook(
        self,
        url: str,
        *,
        collection: str | None = None,
        events: list[EventKind] | None = None,
        secret: str | None = None,
    ) -> models.WebhookMade:
        """Create a webhook for future events; only this response contains the secret."""
        body = without_none(url=url, collection=collection, events=events, secret=secret)
        return await self._request_model(models.WebhookMade, "POST", "/v1/webhooks", json=body)

    async def get_webhook(self, webhook_id: str) -> models.Webhook:
        """Get a webhook."""
        path = path_of("/v1/webhooks/{webhook_id}", webhook_id=webhook_id)
        return await self._request_model(models.Webhook, "GET", path)

    async def delete_webhook(self, webhook_id: str) -> models.Webhook:
        """Delete a webhook."""
        path = path_of("/v1/webhooks/{webhook_id}", webhook_id=webhook_id)
        return await self._request_model(models.Webhook, "DELETE", path)

    async def list_deliveries(
        self,
        webhook_id: str,
        *,
        state: DeliveryState | None = None,
        before: int | None = None,
        limit: int | None = None,
    ) -> models.Deliveries:
        """Get a page of sent and waiting deliveries, newest events first."""
        path = path_of("/v1/webhooks/{webhook_id}/deliveries", webhook_id=webhook_id)
        params = without_none(state=state, before=before, limit=limit)
        return await self._request_model(models.Deliveries, "GET", path, params=params)

    async def retry_delivery(self, webhook_id: str, delivery_id: str) -> models.Webhook:
        """Send a delivery again."""
        path = path_of(
            "/v1/webhooks/{webhook_id}/deliveries/{delivery_id}/retry",
            webhook_id=webhook_id,
            delivery_id=delivery_id,
        )
        return await self._request_model(models.Webhook, "POST", path)

    async def show_usage(
        self,
        *,
        collection: str | None = None,
        tenant: str | None = None,
        days: int | None = None,
    ) -> models.UsageMessage:
        """Get the tokens and cost of the language model by day and model."""
        params = without_none(collection=collection, tenant=tenant, days=days)
        return await self._request_model(models.UsageMessage, "GET", "/v1/usage", params=params)

    async def healthz(self) -> models.Health:
        """Check that the server is alive."""
        return await self._request_model(models.Health, "GET", "/healthz")

    async def readyz(self) -> models.Readiness:
        """Get the readiness of each part; a server that is not ready raises no error."""
        return await self._request_model(models.Readiness, "GET", "/readyz", also=(503,))

    async def metrics(self) -> str:
        """Get the metrics in the text format of Prometheus."""
        return await self.request_text("/metrics")
