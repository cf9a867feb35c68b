"""Telling receivers what happened: deliveries are made of events, sent, and tried again."""

import logging
import random
import time
from concurrent.futures import ThreadPoolExecutor

from celery import shared_task

from callslip.errors import CallslipError
from config import get_settings
from models.per_process import PerProcess
from stores.ledger import Delivery, Webhook
from tasks.maintenance import alone
from tasks.process import ledger
from tasks.receivers import Outcome, Receivers

log = logging.getLogger(__name__)

SEND_EVERY_SECONDS = 5.0

TURN_SECONDS = 20.0
"""Of one run for each receiver; what is left comes with the next."""

AT_ONCE = 8
"""Receivers that are talked to at the same time: one that hangs holds up no other."""

PER_READ = 50

FIRST_WAIT, LONGEST_WAIT = 5.0, 6 * 3600.0
"""Seconds before a delivery that failed is tried again; doubled each time."""

MOST_DOUBLINGS = 20

DAY = 86_400.0

GONE = 410
"""The receiver wants nothing more, by the specification."""

receivers = PerProcess(lambda: Receivers(get_settings().webhooks)).get


@shared_task(name="webhooks.send")
def send() -> None:
    """Make deliveries of what happened, and send what is due."""
    with alone("webhooks", TURN_SECONDS + 3 * get_settings().webhooks.timeout_seconds) as lock:
        if lock is None:
            return
        ledger().webhooks.fan_out()
        until = time.monotonic() + TURN_SECONDS
        hooks = [hook for hook in ledger().webhooks.all() if hook.stopped_at is None]
        if hooks:
            with ThreadPoolExecutor(min(AT_ONCE, len(hooks))) as pool:
                list(pool.map(lambda hook: _turn(hook, until), hooks))


def wait_seconds(attempts: int) -> float:
    """How long after so many failed tries the next one comes, with jitter."""
    wait = min(FIRST_WAIT * 2.0 ** min(attempts - 1, MOST_DOUBLINGS), LONGEST_WAIT)
    return wait * random.uniform(0.75, 1.25)  # noqa: S311 - so that not all come back at once


def _turn(hook: Webhook, until: float) -> None:
    """Send to one receiver what is due, in order; the first failure ends the turn."""
    try:
        while due := ledger().webhooks.due(hook.webhook_id, PER_READ):
            for delivery in due:
                if time.monotonic() > until or not _send(hook, delivery):
                    return
    except CallslipError as error:
        log.warning("webhook %s put off: %s", hook.webhook_id, error.detail)


def _send(hook: Webhook, delivery: Delivery) -> bool:
    outcome = receivers().send(hook, delivery)
    if outcome.error is None and outcome.status is not None:
        ledger().webhooks.delivered(delivery.delivery_id, outcome.status)
        return True
    next_at = _next_at(delivery)
    ledger().webhooks.failed(
        delivery.delivery_id, outcome.status, outcome.error or "no answer", next_at
    )
    _tell(hook, delivery, outcome, next_at)
    if outcome.status == GONE:
        ledger().webhooks.stop(hook.webhook_id)
    return False


def _next_at(delivery: Delivery) -> float | None:
    """When to try again; None where the time for it is over."""
    next_at = time.time() + wait_seconds(delivery.attempts + 1)
    last = delivery.created_at + get_settings().webhooks.give_up_days * DAY
    return next_at if next_at <= last else None


def _tell(hook: Webhook, delivery: Delivery, outcome: Outcome, next_at: float | None) -> None:
    fate = "given up" if next_at is None else f"again in {next_at - time.time():.0f} s"
    log.warning(
        "webhook %s, delivery %s: %s, %s",
        hook.webhook_id,
        delivery.delivery_id,
        outcome.error,
        fate,
    )
