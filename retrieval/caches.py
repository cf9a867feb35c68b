"""Bounded in-process caches of earlier searches, with hit counters."""

import threading
import time
from collections.abc import Callable, Hashable
from typing import Generic, Protocol, TypeVar

from cachetools import LRUCache, TTLCache

S = TypeVar("S")
T = TypeVar("T")


class Counted(Protocol):
    """A cache, or another component that answers some searches, with hit and miss counters."""

    hits: int
    misses: int


class Cache(Generic[T]):
    """A cache of at most `most` recently used values, each for `seconds`. Threads may share it.

    If `most` is 0, the cache stores and counts nothing.
    """

    def __init__(self, most: int, seconds: float = float("inf")) -> None:
        self._most = most
        self._values: TTLCache[Hashable, T] = TTLCache(most, seconds, timer=time.monotonic)
        self._lock = threading.Lock()
        self.hits = 0
        self.misses = 0

    def get(self, key: Hashable) -> T | None:
        """Return the value of this key; None if there is none or it has expired."""
        if not self._most:
            return None
        with self._lock:
            value = self._values.get(key)
            if value is None:
                self.misses += 1
            else:
                self.hits += 1
            return value

    def put(self, key: Hashable, value: T) -> None:
        """Store a value; a full cache drops the least recently used value."""
        if not self._most:
            return
        with self._lock:
            self._values[key] = value


class Watched(Generic[S, T]):
    """Values that are read again when a state has changed; the state is read every `seconds`.

    The cache keeps the `most` most recently used values. Threads may share it: one thread reads,
    the others wait.
    """

    def __init__(self, most: int, seconds: float) -> None:
        self._seconds = seconds
        self._values: LRUCache[Hashable, tuple[float, S, T]] = LRUCache(most)
        self._lock = threading.Lock()

    def get(self, key: Hashable, state: Callable[[], S], read: Callable[[S], T]) -> T:
        """Return the value of this key; `read` computes it from the result of `state`."""
        with self._lock:
            stored, now = self._values.get(key), time.monotonic()
            if stored is not None and now - stored[0] < self._seconds:
                return stored[2]
            current = state()
            unchanged = stored is not None and stored[1] == current
            value = stored[2] if stored is not None and unchanged else read(current)
            self._values[key] = now, current, value
            return value
