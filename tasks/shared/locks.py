"""Locks of periodic tasks: if two schedulers queue a task twice, only one worker runs it."""

import contextlib
from collections.abc import Iterator

import redis
from redis.lock import Lock

LOCK_SECONDS = 60.0
"""Seconds that one item of work may take; after this time the lock of a killed worker expires."""


@contextlib.contextmanager
def alone(broker: redis.Redis, name: str, seconds: float = LOCK_SECONDS) -> Iterator[Lock | None]:
    """Yield the lock with this name, or None if another process has it.

    The lock expires after `seconds`; its method `reacquire` restarts this time.
    """
    lock = broker.lock(f"lock:{name}", timeout=seconds, blocking=False)
    acquired = lock.acquire()
    try:
        yield lock if acquired else None
    finally:
        if acquired:
            with contextlib.suppress(Exception):  # it expired: another process may have it
                lock.release()
