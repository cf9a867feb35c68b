"""Webhooks, use, and whether the desk is well."""

from callslip.client import models
from callslip.client._sync.transport import Transport
from callslip.client.wire import given, path_of
from callslip.client.words import DeliveryState, EventKind


class Service(Transport):
    """What is asked of the desk itself."""

    def list_webhooks(self) -> models.Webhooks:
        """Every webhook, oldest first."""
        return self._asked(models.Webhooks, "GET", "/v1/webhooks")

    def create_webhook(
        self,
        url: str,
        *,
        collection: str | None = None,
        events: list[EventKind] | None = None,
        secret: str | None = None,
    ) -> models.WebhookMade:
        """Be told of events from now on; the secret is shown this once."""
        body = given(url=url, collection=collection, events=events, secret=secret)
        return self._asked(models.WebhookMade, "POST", "/v1/webhooks", json=body)

    def get_webhook(self, webhook_id: str) -> models.Webhook:
        """One webhook."""
        path = path_of("/v1/webhooks/{webhook_id}", webhook_id=webhook_id)
        return self._asked(models.Webhook, "GET", path)

    def delete_webhook(self, webhook_id: str) -> models.Webhook:
        """No more of it."""
        path = path_of("/v1/webhooks/{webhook_id}", webhook_id=webhook_id)
        return self._asked(models.Webhook, "DELETE", path)

    def list_deliveries(
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
        return self._asked(models.Deliveries, "GET", path, params=params)

    def retry_delivery(self, webhook_id: str, delivery_id: str) -> models.Webhook:
        """Send it again."""
        path = path_of(
            "/v1/webhooks/{webhook_id}/deliveries/{delivery_id}/retry",
            webhook_id=webhook_id,
            delivery_id=delivery_id,
        )
        return self._asked(models.Webhook, "POST", path)

    def show_usage(
        self,
        *,
        collection: str | None = None,
        tenant: str | None = None,
        days: int | None = None,
    ) -> models.UsageMessage:
        """Tokens and cost of the language model, by day and model."""
        params = given(collection=collection, tenant=tenant, days=days)
        return self._asked(models.UsageMessage, "GET", "/v1/usage", params=params)

    def healthz(self) -> models.Health:
        """Whether the desk is alive."""
        return self._asked(models.Health, "GET", "/healthz")

    def readyz(self) -> models.Readiness:
        """What is ready and what is not; both are answers."""
        return self._asked(models.Readiness, "GET", "/readyz", also=(503,))

    def metrics(self) -> str:
        """Numbers, as Prometheus reads them."""
        return self.request_text("/metrics")
