"""Values kept for the next search, the last used ones, with how often they served."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, Protocol, TypeVar

S = TypeVar("S")
T = TypeVar("T")


class Counted(Protocol):
    """What answers some searches by itself, and counts which."""

    hits: int
    misses: int


class Cache(Generic[T]):
    """The values used last, at most `most`, each for `seconds`. Threads may share it.

    At 0 it keeps, and counts, nothing.
    """

    def __init__(self, most: int, seconds: float = float("inf")) -> None:
        self._most, self._seconds = most, seconds
        self._values: OrderedDict[Hashable, tuple[float, T]] = OrderedDict()
        self._lock = threading.Lock()
        self.hits = 0
        self.misses = 0

    def get(self, key: Hashable) -> T | None:
        """The value kept under this key; None where there is none, or it is too old."""
        if not self._most:
            return None
        with self._lock:
            found = self._values.get(key)
            if found is None or time.monotonic() - found[0] > self._seconds:
                self.misses += 1
                return None
            self.hits += 1
            self._values.move_to_end(key)
            return found[1]

    def put(self, key: Hashable, value: T) -> None:
        """Keep a value; the one used longest ago goes."""
        with self._lock:
            self._values[key] = time.monotonic(), value
            self._values.move_to_end(key)
            while len(self._values) > self._most:
                self._values.popitem(last=False)


class Watched(Generic[S, T]):
    """Values that are read again when a state changed, which is asked for each `seconds`.

    The last `most` that were read are kept. Threads may share it: one reads, the others wait.
    """

    def __init__(self, most: int, seconds: float) -> None:
        self._most, self._seconds = most, seconds
        self._values: OrderedDict[Hashable, tuple[float, S, T]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, state: Callable[[], S], read: Callable[[S], T]) -> T:
        """The value under this key; `read` makes it of the state that `state` gives."""
        with self._lock:
            held = self._values.get(key)
            now = time.monotonic()
            if held is not None and now - held[0] < self._seconds:
                return held[2]
            current = state()
            value = held[2] if held is not None and held[1] == current else read(current)
            self._values[key] = now, current, value
            self._values.move_to_end(key)
            while len(self._values) > self._most:
                self._values.popitem(last=False)
            return value
