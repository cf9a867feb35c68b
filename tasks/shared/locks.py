"""Locks of periodic tasks: if two schedulers queue a task twice, only one worker runs it."""

import contextlib
from collections.abc import Iterator

import redis
from redis.lock import Lock

LOCK_SECONDS = 60.0
"""Seconds that one item of work may take; after this time the lock of a killed worker expires."""

DUE_SECONDS = 900.0
"""Seconds that queueing the messages of all collections may take."""


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


@contextlib.contextmanager
def once_in(broker: redis.Redis, name: str, hours: float) -> Iterator[bool]:
    """Yield whether the block is due: once in `hours`, never if they are 0.

    The broker has the key `name` from the end of a block that was due until the next one is due;
    after an error in the block it has none, so that the next look tries again. Meanwhile the block
    is due for no other process.
    """
    with alone(broker, name, DUE_SECONDS) as lock:
        due = lock is not None and bool(hours) and not broker.exists(name)
        yield due
        if due:
            broker.set(name, 1, px=int(hours * 3_600_000))
