"""Sends signed events to the receivers of webhooks (Standard Webhooks specification).

https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

import base64
import binascii
import json
import secrets
import time
from dataclasses import dataclass
from datetime import UTC, datetime

import httpx
from standardwebhooks import Webhook as SignedWebhook

from callslip import __version__
from callslip.config.settings import WebhookSettings
from callslip.errors import CallslipError, InvalidRequest
from callslip.http.addresses import CheckedTransport
from callslip.http.transport import UNTIL, BoundedTransport, DeadlinePassed
from callslip.stores.ledger import Delivery, Webhook

PREFIX = "whsec_"
FEWEST_BYTES, MOST_BYTES = 24, 64
"""The least and the greatest length of a secret in bytes, as the specification requires."""


@dataclass(frozen=True)
class Outcome:
    """The result of sending an event. `status` is None without a response, `error` on success."""

    status: int | None
    error: str | None


def new_secret() -> str:
    """A random secret of 32 bytes in base64, with the specification's prefix."""
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def key_of(secret: str) -> bytes:
    """The bytes of a secret. Raises InvalidRequest if the secret is malformed."""
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not secret.startswith(PREFIX) or not FEWEST_BYTES <= len(key) <= MOST_BYTES:
        raise InvalidRequest(
            f"secret is not {PREFIX} and {FEWEST_BYTES} to {MOST_BYTES} bytes in base64",
            hint="Leave it out to get one.",
        )
    return key


def sign(secret: str, delivery_id: str, timestamp: int, body: bytes) -> str:
    """The value of `webhook-signature`, for a time in seconds since 1970 and a body of UTF-8."""
    moment = datetime.fromtimestamp(timestamp, UTC)
    return SignedWebhook(key_of(secret)).sign(delivery_id, moment, body.decode())


class Receivers:
    """The HTTP client of all receivers; one per process, shared by many threads."""

    def __init__(self, settings: WebhookSettings) -> None:
        self._seconds = settings.timeout_seconds
        self._http = httpx.Client(
            transport=BoundedTransport(
                None, lambda: CheckedTransport(settings.networks), whole=False
            ),
            timeout=self._seconds,
            headers={"User-Agent": f"callslip/{__version__}"},
            trust_env=False,
        )

    def send(self, hook: Webhook, delivery: Delivery) -> Outcome:
        """Send an event once, and return the outcome. A failure of the receiver raises no error."""
        body = json.dumps(delivery.body, ensure_ascii=False, separators=(",", ":")).encode()
        now = int(time.time())
        headers = {
            "Content-Type": "application/json",
            "webhook-id": delivery.delivery_id,
            "webhook-timestamp": str(now),
            "webhook-signature": sign(hook.secret, delivery.delivery_id, now, body),
        }
        try:
            extensions = {UNTIL: time.monotonic() + 2 * self._seconds}
            with self._http.stream(
                "POST", hook.url, content=body, headers=headers, extensions=extensions
            ) as response:
                status = response.status_code
        except DeadlinePassed:
            return Outcome(None, httpx.ReadError.__name__)  # the response does not end
        except httpx.TimeoutException:
            return Outcome(None, f"no answer within {self._seconds:g} s")
        except CallslipError as error:  # the URL's address is not allowed, or there is none
            return Outcome(None, error.detail[:256])
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
            return Outcome(None, type(error).__name__)
        return Outcome(status, None if 200 <= status < 300 else f"the answer was {status}")

    def close(self) -> None:
        """Close every connection."""
        self._http.close()
