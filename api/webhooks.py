"""/v1/webhooks: who is told of what happens to documents."""

import re
from contextlib import suppress

import httpx
from flask import Response
from flask_openapi3 import APIBlueprint, Tag
from pydantic import BaseModel, Field

from api import messages, views
from api.answers import answer
from callslip.addresses import is_allowed, resolve
from callslip.errors import AddressNotAllowed, Conflict, InvalidRequest, SourceDown
from config import get_settings
from stores.ledger import DeliveryState
from tasks.process import ledger
from tasks.receivers import key_of, new_secret

blueprint = APIBlueprint("webhooks", __name__, abp_tags=[Tag(name="webhooks")])


_HOST = re.compile(rb"[A-Za-z0-9._:-]+")


class WebhookPath(BaseModel):
    webhook_id: str


class DeliveryPath(WebhookPath):
    delivery_id: str


class DeliveriesQuery(messages.Request):
    state: DeliveryState | None = Field(None, description="only these")
    before: int | None = Field(None, ge=0, description="`next_before` of the page before")
    limit: int = Field(100, ge=1, le=1000)


@blueprint.post("/v1/webhooks", responses={201: messages.WebhookMade})
def create_webhook(body: messages.NewWebhook) -> Response:
    """Subscribe a URL to events; from now on they are sent to it, signed with the secret.

    The answer is the only one that shows the secret.
    """
    url = _checked(body.url)
    if body.collection is not None:
        ledger().collections.get(body.collection)
    secret = body.secret or new_secret()
    key_of(secret)
    kinds = list(dict.fromkeys(body.events))
    made = ledger().webhooks.create(url, secret, kinds, body.collection)
    told = views.webhook(made).model_dump() | {"secret": secret}
    return answer(messages.WebhookMade.model_validate(told), 201)


@blueprint.get("/v1/webhooks", responses={200: messages.Webhooks})
def list_webhooks() -> Response:
    """Every webhook, oldest first."""
    found = [views.webhook(hook) for hook in ledger().webhooks.all()]
    return answer(messages.Webhooks(webhooks=found))


@blueprint.get("/v1/webhooks/<string:webhook_id>", responses={200: messages.Webhook})
def get_webhook(path: WebhookPath) -> Response:
    """One webhook."""
    return answer(views.webhook(ledger().webhooks.get(path.webhook_id)))


@blueprint.delete("/v1/webhooks/<string:webhook_id>", responses={200: messages.Webhook})
def delete_webhook(path: WebhookPath) -> Response:
    """Forget a webhook with its deliveries; nothing more is sent."""
    hook = ledger().webhooks.get(path.webhook_id)
    ledger().webhooks.delete(path.webhook_id)
    return answer(views.webhook(hook))


@blueprint.get("/v1/webhooks/<string:webhook_id>/deliveries", responses={200: messages.Deliveries})
def list_deliveries(path: WebhookPath, query: DeliveriesQuery) -> Response:
    """What was sent or waits to be, newest events first: tries, answers, what comes next."""
    ledger().webhooks.get(path.webhook_id)
    found = ledger().webhooks.deliveries(
        path.webhook_id, state=query.state, before=query.before, limit=query.limit
    )
    return answer(
        messages.Deliveries(
            deliveries=[views.delivery(each) for each in found],
            next_before=found[-1].event_id if len(found) == query.limit else None,
        )
    )


@blueprint.post(
    "/v1/webhooks/<string:webhook_id>/deliveries/<string:delivery_id>/retry",
    responses={202: messages.Webhook},
)
def retry_delivery(path: DeliveryPath) -> Response:
    """Send a delivery again, also one that was given up or had arrived."""
    hook = ledger().webhooks.get(path.webhook_id)
    if hook.stopped_at is not None:
        raise Conflict(
            f"webhook {hook.webhook_id} is stopped: its receiver answered 410 Gone",
            hint="Make a new webhook.",
        )
    ledger().webhooks.resend(path.webhook_id, path.delivery_id)
    return answer(views.webhook(hook), 202)


def _checked(given: str) -> str:
    """A URL that may be called; every delivery is checked again, as names change."""
    try:
        url = httpx.URL(given)
    except httpx.InvalidURL:
        raise InvalidRequest("url is no URL") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise InvalidRequest("url must begin with https:// or http:// and name a host")
    if not _HOST.fullmatch(url.raw_host) or not 0 < (url.port or 443) < 65536:
        raise InvalidRequest("url names a host or a port that cannot be")
    if url.userinfo:
        raise InvalidRequest("url holds a user name or password", hint="Leave it out.")
    host, allowed = url.raw_host.decode("ascii"), get_settings().webhooks.networks
    with suppress(SourceDown):  # what has no address now may have one later
        for address in resolve(host, url.port or 443):
            if not is_allowed(address, allowed):
                raise AddressNotAllowed(f"{host!r} leads to {address}, which is not public")
    return str(url)
