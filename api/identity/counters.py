"""Counters that expire, which all processes of the API share through the broker.

While the broker does not answer, each process counts by itself.
"""

import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

import redis

from callslip.config.settings import Settings
from callslip.tasks.shared.broker import connect

T = TypeVar("T")

PREFIX = "callslip:access:"

PATIENCE_SECONDS = 0.3
"""The longest wait for the broker, because every request with a limited key waits for it."""

PAUSE_SECONDS = 5.0
"""The pause before the next try after the broker did not answer."""

MOST = 10_000
"""The most counters of a process."""


class Counters:
    """Counts events by name."""

    def __init__(self, settings: Settings) -> None:
        self._broker = None
        if settings.broker.url is not None:
            self._broker = connect(settings, PATIENCE_SECONDS)
        self._paused_until = 0.0
        self._lock = threading.Lock()
        self._local: dict[str, tuple[int, float]] = {}

    def add(self, name: str, seconds: int) -> int:
        """Count an event, and return the number of those since the counter last expired.

        The counter expires this many seconds after its last event.
        """

        def shared(broker: Any) -> int:
            with broker.pipeline() as pipe:
                pipe.incr(PREFIX + name)
                pipe.expire(PREFIX + name, seconds)
                return int(pipe.execute()[0])

        return self._either(shared, lambda: self._add(name, seconds))

    def set(self, name: str, seconds: int) -> None:
        """Make a mark that expires after this many seconds."""

        def shared(broker: Any) -> None:
            broker.set(PREFIX + name, 1, ex=seconds)

        def local() -> None:
            with self._lock:
                self._store(name, 1, seconds)

        self._either(shared, local)

    def left(self, name: str) -> float:
        """Seconds until a mark expires; 0 if there is none."""

        def shared(broker: Any) -> float:
            return max(0.0, int(broker.pttl(PREFIX + name)) / 1000)

        def local() -> float:
            _, until = self._local.get(name, (0, 0.0))
            return max(0.0, until - time.monotonic())

        return self._either(shared, local)

    def _either(self, shared: Callable[[Any], T], local: Callable[[], T]) -> T:
        if self._broker is not None and time.monotonic() >= self._paused_until:
            try:
                return shared(self._broker)
            except redis.RedisError:
                self._paused_until = time.monotonic() + PAUSE_SECONDS
        return local()

    def _add(self, name: str, seconds: int) -> int:
        with self._lock:
            count, until = self._local.get(name, (0, 0.0))
            count = count + 1 if until > time.monotonic() else 1
            self._store(name, count, seconds)
            return count

    def _store(self, name: str, count: int, seconds: int) -> None:
        now = time.monotonic()
        if len(self._local) >= MOST:
            self._local = {n: each for n, each in self._local.items() if each[1] > now}
        if len(self._local) < MOST:
            self._local[name] = count, now + seconds
