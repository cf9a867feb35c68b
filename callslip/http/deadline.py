"""The deadline of the request that a thread works on, for clients that wait for servers."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_until: ContextVar[float | None] = ContextVar("deadline", default=None)


@contextmanager
def until(moment: float) -> Iterator[None]:
    """Work by this moment (UTC seconds since 1970) while the block runs."""
    token = _until.set(moment)
    try:
        yield
    finally:
        _until.reset(token)


def share(most: float) -> float:
    """Half of the seconds until the deadline, at most `most`: another server may yet be asked."""
    seconds = left()
    return most if seconds is None else min(most, max(0.05, seconds / 2))


def left() -> float | None:
    """Seconds until the deadline, 0 after it; None without one."""
    moment = _until.get()
    return None if moment is None else max(0.0, moment - time.time())
