"""Sending an event to its receiver, signed as the Standard Webhooks specification says.

https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

import base64
import binascii
import hashlib
import hmac
import json
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import httpx

from callslip import __version__
from callslip.addresses import CheckedTransport
from callslip.errors import CallslipError, InvalidRequest
from config.settings import WebhookSettings
from stores.ledger import Delivery, Webhook

PREFIX = "whsec_"
FEWEST_BYTES, MOST_BYTES = 24, 64
"""Of a secret, by the specification."""


@dataclass(frozen=True)
class Outcome:
    """What a receiver answered; `error` says why that is no success, None where it is one."""

    status: int | None
    error: str | None


def new_secret() -> str:
    """A secret that nobody can guess."""
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def key_of(secret: str) -> bytes:
    """The bytes of a secret; InvalidRequest for one that is none."""
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
    """The value of `webhook-signature`: HMAC-SHA256 of id, time and body with dots between."""
    signed = b".".join((delivery_id.encode(), str(timestamp).encode(), body))
    digest = hmac.new(key_of(secret), signed, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"


class Receivers:
    """The way to all receivers; one per process, used by many threads."""

    def __init__(self, settings: WebhookSettings) -> None:
        self._seconds = settings.timeout_seconds
        self._http = httpx.Client(
            transport=CheckedTransport(settings.networks),
            timeout=self._seconds,
            headers={"User-Agent": f"callslip/{__version__}"},
            trust_env=False,
        )

    def send(self, hook: Webhook, delivery: Delivery) -> Outcome:
        """Send once; never raises for what a receiver does."""
        body = json.dumps(delivery.body, ensure_ascii=False, separators=(",", ":")).encode()
        now = int(time.time())
        headers = {
            "Content-Type": "application/json",
            "webhook-id": delivery.delivery_id,
            "webhook-timestamp": str(now),
            "webhook-signature": sign(hook.secret, delivery.delivery_id, now, body),
        }
        try:
            with (
                _deadline(2 * self._seconds) as extensions,
                self._http.stream(
                    "POST", hook.url, content=body, headers=headers, extensions=extensions
                ) as response,
            ):
                status = response.status_code
        except httpx.TimeoutException:
            return Outcome(None, f"no answer within {self._seconds:g} s")
        except CallslipError as error:  # its address may not be called, or it has none
            return Outcome(None, error.detail[:256])
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return Outcome(None, type(error).__name__)
        return Outcome(status, None if 200 <= status < 300 else f"the answer was {status}")

    def close(self) -> None:
        """Close every connection."""
        self._http.close()


@contextmanager
def _deadline(seconds: float) -> Iterator[dict[str, Any]]:
    """Extensions of a request that ends within so many seconds.

    The timeouts of httpx are those of single reads: a receiver that sends a byte now and then
    would hold the thread for ever. A socket that is shut down wakes whoever reads from it.
    """
    opened: list[socket.socket] = []

    def notice(name: str, info: dict[str, Any]) -> None:
        if name.endswith(("connect_tcp.complete", "start_tls.complete")):
            opened.append(info["return_value"].get_extra_info("socket"))

    def cut() -> None:
        with suppress(OSError, IndexError):
            opened[-1].shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(seconds, cut)
    timer.daemon = True
    timer.start()
    try:
        yield {"trace": notice}
    finally:
        timer.cancel()
