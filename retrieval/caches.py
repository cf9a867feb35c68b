"""Values kept for the next search, the last used ones, with how often they served."""

import threading
import time
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, Protocol, TypeVar

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
