"""Webhooks, use, and whether the desk is well."""

from callslip.client import models
from callslip.client._async.transport import AsyncTransport
from callslip.client.wire import given, path_of
from callslip.client.words import DeliveryState, EventKind


class Service(AsyncTransport):
    """What is asked of the desk itself."""

    async def list_webhooks(self) -> models.Webhooks:
        """Every webhook, oldest first."""
        return await self._asked(models.Webhooks, "GET", "/v1/webhooks")

    async def create_webhook(
        self,
        url: str,
        *,
        collection: str | None = None,
        events: list[EventKind] | None = None,
        secret: str | None = None,
    ) -> models.WebhookMade:
        """Be told of events from now on; the secret is shown this once."""
        body = given(url=url, collection=collection, events=events, secret=secret)
        return await self._asked(models.WebhookMade, "POST", "/v1/webhooks", json=body)

    async def get_webhook(self, webhook_id: str) -> models.Webhook:
        """One webhook."""
        path = path_of("/v1/webhooks/{webhook_id}", webhook_id=webhook_id)
        return await self._asked(models.Webhook, "GET", path)

    async def delete_webhook(self, webhook_id: str) -> models.Webhook:
        """No more of it."""
        path = path_of("/v1/webhooks/{webhook_id}", webhook_id=webhook_id)
        return await self._asked(models.Webhook, "DELETE", path)

    async def list_deliveries(
        self,
        webhook_id: str,
        *,
        state: DeliveryState | None = None,
        before: int | None = None,
        limit: int | None = None,
    ) -> models.Deliveries:
        """A page of what was sent or waits to be, newest events first."""
        path = path_of("/v1/webhooks/{webhook_id}/deliveries", webhook_id=webhook_id)
        params = given(state=state, before=before, limit=limit)
        return await self._asked(models.Deliveries, "GET", path, params=params)

    async def retry_delivery(self, webhook_id: str, delivery_id: str) -> models.Webhook:
        """Send it again."""
        path = path_of(
            "/v1/webhooks/{webhook_id}/deliveries/{delivery_id}/retry",
            webhook_id=webhook_id,
            delivery_id=delivery_id,
        )
        return await self._asked(models.Webhook, "POST", path)

    async def show_usage(
        self,
        *,
        collection: str | None = None,
        tenant: str | None = None,
        days: int | None = None,
    ) -> models.UsageMessage:
        """Tokens and cost of the language model, by day and model."""
        params = given(collection=collection, tenant=tenant, days=days)
        return await self._asked(models.UsageMessage, "GET", "/v1/usage", params=params)

    async def healthz(self) -> models.Health:
        """Whether the desk is alive."""
        return await self._asked(models.Health, "GET", "/healthz")

    async def readyz(self) -> models.Readiness:
        """What is ready and what is not; both are answers."""
        return await self._asked(models.Readiness, "GET", "/readyz", also=(503,))

    async def metrics(self) -> str:
        """Numbers, as Prometheus reads them."""
        return await self.request_text("/metrics")
