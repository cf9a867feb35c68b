"""/v1/webhooks: subscriptions of URLs to events of documents."""

import re
from contextlib import suppress

import httpx
from flask import Response
from flask_openapi3 import APIBlueprint, Tag
from pydantic import BaseModel, Field

from callslip.api.http import responses
from callslip.api.http.context import current
from callslip.api.http.json_response import answer
from callslip.api.identity.current import caller
from callslip.api.identity.scopes import sees_webhook
from callslip.api.messages import documents
from callslip.errors import (
    AddressNotAllowed,
    Conflict,
    InvalidRequest,
    PermissionMissing,
    SourceDown,
)
from callslip.http.addresses import is_allowed, resolve
from callslip.http.urls import parse_url
from callslip.messages.values import OptionalWhole, Whole
from callslip.stores.ledger import DeliveryState
from callslip.tasks.shared.receivers import key_of, new_secret

blueprint = APIBlueprint("webhooks", __name__, abp_tags=[Tag(name="webhooks")])


_HOST = re.compile(rb"[A-Za-z0-9._:-]+")


class WebhookPath(BaseModel):
    webhook_id: str


class DeliveryPath(WebhookPath):
    delivery_id: str


class DeliveriesQuery(documents.Request):
    state: DeliveryState | None = Field(None, description="only these")
    before: OptionalWhole = Field(
        None, ge=0, lt=2**63, description="`next_before` of the page before"
    )
    limit: Whole = Field(100, ge=1, le=1000)


@blueprint.post("/v1/webhooks", responses={201: documents.WebhookMade})
def create_webhook(body: documents.NewWebhook) -> Response:
    """Subscribe a URL to events; the server sends events from now on, signed with the secret.

    Only this response contains the secret.
    """
    if not sees_webhook(caller(), body.collection):
        raise PermissionMissing("the caller may not receive these events")
    url = _checked(body.url)
    if body.collection is not None:
        current().ledger.collections.get(body.collection)
    secret = body.secret or new_secret()
    key_of(secret)
    kinds = list(dict.fromkeys(body.events))
    made = current().ledger.webhooks.create(url, secret, kinds, body.collection)
    fields = responses.webhook(made).model_dump() | {"secret": secret}
    return answer(documents.WebhookMade.model_validate(fields), 201)


@blueprint.get("/v1/webhooks", responses={200: documents.Webhooks})
def list_webhooks() -> Response:
    """List every webhook, oldest first."""
    limits = caller()
    webhooks = [
        responses.webhook(hook)
        for hook in current().ledger.webhooks.all()
        if sees_webhook(limits, hook.collection)
    ]
    return answer(documents.Webhooks(webhooks=webhooks))


@blueprint.get("/v1/webhooks/<string:webhook_id>", responses={200: documents.Webhook})
def get_webhook(path: WebhookPath) -> Response:
    """Get one webhook."""
    return answer(responses.webhook(current().ledger.webhooks.get(path.webhook_id)))


@blueprint.delete("/v1/webhooks/<string:webhook_id>", responses={200: documents.Webhook})
def delete_webhook(path: WebhookPath) -> Response:
    """Delete a webhook with its deliveries; the server sends no more events."""
    hook = current().ledger.webhooks.get(path.webhook_id)
    current().ledger.webhooks.delete(path.webhook_id)
    return answer(responses.webhook(hook))


@blueprint.get("/v1/webhooks/<string:webhook_id>/deliveries", responses={200: documents.Deliveries})
def list_deliveries(path: WebhookPath, query: DeliveriesQuery) -> Response:
    """List deliveries, newest events first, with attempts, responses and the next attempt."""
    current().ledger.webhooks.get(path.webhook_id)
    deliveries = current().ledger.webhooks.deliveries(
        path.webhook_id, state=query.state, before=query.before, limit=query.limit
    )
    return answer(
        documents.Deliveries(
            deliveries=[responses.delivery(each) for each in deliveries],
            next_before=deliveries[-1].event_id if len(deliveries) == query.limit else None,
        )
    )


@blueprint.post(
    "/v1/webhooks/<string:webhook_id>/deliveries/<string:delivery_id>/retry",
    responses={202: documents.Webhook},
)
def retry_delivery(path: DeliveryPath) -> Response:
    """Send a delivery again, even if it succeeded or was given up."""
    hook = current().ledger.webhooks.get(path.webhook_id)
    if hook.stopped_at is not None:
        raise Conflict(
            f"webhook {hook.webhook_id} is stopped: its receiver answered 410 Gone",
            hint="Make a new webhook.",
        )
    current().ledger.webhooks.resend(path.webhook_id, path.delivery_id)
    return answer(responses.webhook(hook), 202)


def _checked(address: str) -> str:
    """Check that the server may call the URL; each delivery checks again, as DNS can change."""
    try:
        url = parse_url(address)
    except httpx.InvalidURL as error:
        raise InvalidRequest(f"url cannot be read: {error}") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise InvalidRequest("url must begin with https:// or http:// and name a host")
    port = 443 if url.port is None else url.port
    if not _HOST.fullmatch(url.raw_host) or not 0 < port < 65536:
        raise InvalidRequest("url names a host or a port that cannot be")
    if url.userinfo:
        raise InvalidRequest("url holds a user name or password", hint="Leave it out.")
    host, allowed = url.raw_host.decode("ascii"), current().settings.webhooks.networks
    with suppress(SourceDown):  # a host without an address may get one later
        for address in resolve(host, port):
            if not is_allowed(address, allowed):
                raise AddressNotAllowed(f"{host!r} leads to {address}, which is not public")
    return str(url)
