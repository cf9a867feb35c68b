"""Sends the replies of a task to its caller, and lets the caller wait for them.

Replies do not use Celery's result backend (docs/architecture.md has the measurement). The task
pushes replies to a Redis list, whose name only this request knows and which expires; the caller
pops them with a deadline.
"""

import json
import logging
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, cast

import redis

from callslip.errors import BY_SLUG, CallslipError, InternalError
from callslip.tasks.shared.broker import as_broker_down

log = logging.getLogger(__name__)

REPLY_TTL_SECONDS = 30
"""Seconds after which a list of replies expires if the caller has not read it."""

LONGEST_POP = 0.5
"""Seconds of one blocking pop: shorter than the shortest timeout of the broker's client."""

OK = '{"ok":'
"""The beginning of a last reply that has a result."""

GONE = ":gone"
"""The end of the key that says that nobody waits for the replies any more."""

Reply = dict[str, Any]
"""A reply as JSON.

The last one is `{"ok": …}` or `{"error": …}`; the ones before it have neither key.
"""


def new_address() -> str:
    """A new name of a reply list, for one request."""
    return f"reply:{uuid.uuid4().hex}"


def send(broker: redis.Redis, address: str, reply: Reply) -> None:
    """Push a reply to the caller's list."""
    _push(broker, address, json.dumps(reply))


def send_result(broker: redis.Redis, address: str, result: str) -> None:
    """Push the last reply, with a result that is JSON already."""
    _push(broker, address, f"{OK}{result}}}")


def _push(broker: redis.Redis, address: str, reply: str) -> None:
    pipeline = broker.pipeline(transaction=False)
    pipeline.lpush(address, reply)
    pipeline.expire(address, REPLY_TTL_SECONDS)
    pipeline.execute()


def abandon(broker: redis.Redis, address: str, seconds: float) -> None:
    """Tell the task that nobody waits for its replies; the task must end within `seconds`."""
    with suppress(redis.RedisError):  # the task ends by its deadline at the latest
        broker.set(f"{address}{GONE}", 1, ex=max(1, int(seconds)))


def is_abandoned(broker: redis.Redis, address: str) -> bool:
    """Whether nobody waits for the replies."""
    return bool(broker.exists(f"{address}{GONE}"))


def failed(error: Exception, what: str) -> Reply:
    """The error reply of a task that failed. Logs an error that is not a CallslipError."""
    if not isinstance(error, CallslipError):
        log.error(
            "%s failed: %s", what, type(error).__name__, exc_info=not isinstance(error, OSError)
        )
        error = InternalError(f"the {what} failed: {type(error).__name__}")
    return {"error": [error.slug, error.detail, error.advice]}


def receive(broker: redis.Redis, address: str, until: float) -> Iterator[Reply]:
    """Iterate over the replies up to the last one, at most until `until` (UTC seconds since 1970).

    Raises the error of an error reply, and BrokerDown if the broker does not answer. Ends without a
    last reply if the time runs out.
    """
    for popped in _pop(broker, address, until):
        reply: Reply = json.loads(popped)
        _raise_error(reply)
        yield reply
        if "ok" in reply:
            return


def receive_result(broker: redis.Redis, address: str, until: float) -> bytes | None:
    """The result of the only reply as JSON; None if it does not come until `until`.

    Raises the errors of `receive`.
    """
    for popped in _pop(broker, address, until):
        if popped.startswith(OK.encode()):
            return popped[len(OK) : -1]
        _raise_error(json.loads(popped))
    return None


def _pop(broker: redis.Redis, address: str, until: float) -> Iterator[bytes]:
    while (left := until - time.time()) > 0:
        with as_broker_down():
            popped = broker.brpop([address], timeout=min(left, LONGEST_POP))
        if popped is not None:
            yield cast(bytes, popped[1])


def _raise_error(reply: Reply) -> None:
    if "error" in reply:
        slug, detail, advice = reply["error"]
        raise BY_SLUG[slug](detail, hint=advice)
