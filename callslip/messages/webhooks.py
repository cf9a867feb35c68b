"""Webhooks and their deliveries."""

from pydantic import Field

from callslip.messages.base import Message, Word
from callslip.vocabulary import DeliveryState, EventKind


class Webhook(Message):
    """A subscription of a URL to events."""

    webhook_id: str
    url: str
    collection: str | None
    events: list[Word[EventKind]]
    created_at: float
    stopped_at: float | None = Field(description="when its receiver was gone (410)")


class WebhookMade(Webhook):
    """A new webhook; only this response contains the secret."""

    secret: str


class Webhooks(Message):
    """Every webhook, oldest first."""

    webhooks: list[Webhook]


class Delivery(Message):
    """The delivery of one event to one receiver."""

    delivery_id: str = Field(description="the header `webhook-id`, the same in every attempt")
    event_id: int
    type: Word[EventKind]
    document_id: str
    state: Word[DeliveryState]
    created_at: float
    attempts: int
    attempted_at: float | None
    next_at: float | None = Field(description="time of the next attempt")
    status: int | None = Field(description="status of the last response")
    error: str | None


class Deliveries(Message):
    """A page of a webhook's deliveries, newest events first."""

    deliveries: list[Delivery]
    next_before: int | None = Field(description="send as `before` for the next page")
