"""How a caller waits for the reply to a task that it queued.

Replies do not use Celery's result backend (docs/architecture.md has the measurement): the task
pushes them to a list that only this request knows and that expires; the caller pops with a
deadline.
"""

import json
import logging
import time
import uuid
from collections.abc import Iterator
from typing import Any

import redis

from callslip.errors import BY_SLUG, BrokerDown, CallslipError, InternalError
from tasks.process import broker

log = logging.getLogger(__name__)

KEPT_SECONDS = 30
"""How long a reply that nobody fetched is kept."""

LONGEST_POP = 20.0
"""Seconds of one wait: well below those after which the client gives up on the broker."""

Reply = dict[str, Any]
"""`{"ok": …}` or `{"error": …}` is the last one; others come before it."""


def new_address() -> str:
    """Where replies to one request go."""
    return f"reply:{uuid.uuid4().hex}"


def send(address: str, reply: Reply) -> None:
    """Push a reply to its caller."""
    pipeline = broker().pipeline(transaction=False)
    pipeline.lpush(address, json.dumps(reply))
    pipeline.expire(address, KEPT_SECONDS)
    pipeline.execute()


def failed(error: Exception, what: str) -> Reply:
    """The reply for a task that came to nothing; one that nobody expected is logged."""
    if not isinstance(error, CallslipError):
        log.error(
            "%s failed: %s", what, type(error).__name__, exc_info=not isinstance(error, OSError)
        )
        error = InternalError(f"the {what} failed: {type(error).__name__}")
    return {"error": [error.slug, error.detail, error.advice]}


def receive(address: str, until: float) -> Iterator[Reply]:
    """The replies as they come, the last one included; ends early where time is up.

    Raises what an error reply stands for, BrokerDown when the broker does not answer.
    """
    while (left := until - time.time()) > 0:
        try:
            popped = broker().brpop([address], timeout=min(left, LONGEST_POP))
        except redis.RedisError as error:
            raise BrokerDown(f"the broker does not answer: {type(error).__name__}") from error
        if popped is None:
            continue
        reply: Reply = json.loads(popped[1])
        if "error" in reply:
            slug, detail, advice = reply["error"]
            raise BY_SLUG[slug](detail, hint=advice)
        yield reply
        if "ok" in reply:
            return
