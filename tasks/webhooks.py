"""Sends events to webhooks: makes deliveries of events, sends them and retries failed ones."""

import logging
import random
import time
from concurrent.futures import ThreadPoolExecutor

from celery import shared_task

from callslip.errors import CallslipError
from callslip.stores.ledger import Delivery, Webhook
from callslip.tasks.composition import Context, current
from callslip.tasks.shared.locks import alone
from callslip.tasks.shared.metering import DELIVERIES, named
from callslip.tasks.shared.receivers import Outcome

log = logging.getLogger(__name__)

SEND_EVERY_SECONDS = 5.0

TURN_SECONDS = 20.0
"""Seconds after which a run starts no further delivery; the next run sends the rest."""

AT_ONCE = 8
"""Receivers that are served concurrently, so that a slow one delays no other."""

PER_READ = 50

FIRST_WAIT, LONGEST_WAIT = 5.0, 6 * 3600.0
"""Seconds before the first retry of a failed delivery, doubled for each next one, and the limit."""

MOST_DOUBLINGS = 20

DAY = 86_400.0

GONE = 410
"""The HTTP status with which a receiver unsubscribes, according to the specification."""


@shared_task(name="webhooks.send")
def send() -> None:
    """Make deliveries of new events, and send the deliveries that are due."""
    context = current()
    seconds = TURN_SECONDS + 3 * context.settings.webhooks.timeout_seconds
    with alone(context.broker, "webhooks", seconds) as lock:
        if lock is None:
            return
        context.ledger.webhooks.fan_out()
        until = time.monotonic() + TURN_SECONDS
        hooks = [hook for hook in context.ledger.webhooks.all() if hook.stopped_at is None]
        if hooks:
            with ThreadPoolExecutor(min(AT_ONCE, len(hooks))) as pool:
                list(pool.map(lambda hook: _turn(context, hook, until), hooks))


def wait_seconds(attempts: int) -> float:
    """Seconds from failed attempt number `attempts` to the next attempt, with 25 % jitter."""
    wait = min(FIRST_WAIT * 2.0 ** min(attempts - 1, MOST_DOUBLINGS), LONGEST_WAIT)
    return wait * random.uniform(0.75, 1.25)  # noqa: S311 - so that not all retries coincide


def _turn(context: Context, hook: Webhook, until: float) -> None:
    """Send the due deliveries of one receiver in order; stop at the first failure."""
    try:
        while due := context.ledger.webhooks.due(hook.webhook_id, PER_READ):
            for delivery in due:
                if time.monotonic() > until or not _send(context, hook, delivery):
                    return
    except CallslipError as error:
        log.warning("webhook %s put off: %s", hook.webhook_id, error.detail)


def _send(context: Context, hook: Webhook, delivery: Delivery) -> bool:
    outcome = context.receivers.send(hook, delivery)
    if outcome.error is None and outcome.status is not None:
        context.ledger.webhooks.delivered(delivery.delivery_id, outcome.status)
        context.meter.add(named(DELIVERIES, "delivered"))
        return True
    next_at = _next_at(context, delivery)
    context.ledger.webhooks.failed(
        delivery.delivery_id, outcome.status, outcome.error or "no answer", next_at
    )
    context.meter.add(named(DELIVERIES, "given-up" if next_at is None else "retry"))
    _tell(hook, delivery, outcome, next_at)
    if outcome.status == GONE:
        context.ledger.webhooks.stop(hook.webhook_id)
    return False


def _next_at(context: Context, delivery: Delivery) -> float | None:
    """The time of the next attempt; None if the delivery is given up."""
    next_at = time.time() + wait_seconds(delivery.attempts + 1)
    last = delivery.created_at + context.settings.webhooks.give_up_days * DAY
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
