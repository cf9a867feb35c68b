"""What a store keeps open of its collections and tenants, within a bound."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, Protocol, TypeVar

LOOK_SECONDS = 10.0
"""Seconds between two looks for files that another process has replaced or removed."""


class Files(Protocol):
    """Open files. Threads that still use them keep what they use until they are done."""

    def close(self) -> None:
        """Close the files that no thread uses, and the others after their use."""

    def is_outdated(self) -> bool:
        """Tell whether another process has replaced or removed the files."""


Key = TypeVar("Key", bound=Hashable)
Opened = TypeVar("Opened", bound=Files)


class OpenFiles(Generic[Key, Opened]):
    """Keeps the files that were used last open, at most `most` of them. Threads share it.

    Every LOOK_SECONDS, a call of `get` also closes outdated files, which otherwise take space on
    the disk after their removal.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._opened: OrderedDict[Key, Opened] = OrderedDict()
        self._look_at = time.monotonic() + LOOK_SECONDS

    def get(self, key: Key, make: Callable[[], Opened]) -> Opened:
        """The open files under a key. `make` opens missing ones; raises what `make` raises."""
        now = time.monotonic()
        with self._lock:
            opened = self._opened.get(key)
            if opened is not None:
                self._opened.move_to_end(key)
            if looks := now >= self._look_at:
                self._look_at = now + LOOK_SECONDS
        if looks:
            self.close_outdated(but=key)
        return opened or self._add(key, make())

    def close(self, key: Key) -> None:
        """Close the files under a key. Idempotent."""
        with self._lock:
            opened = self._opened.pop(key, None)
        if opened is not None:
            opened.close()

    def close_outdated(self, but: Key | None = None) -> None:
        """Close outdated files, except those under the key `but`."""
        for key in self._keys():
            opened = self._opened.get(key)
            if key != but and opened is not None and opened.is_outdated():
                self.close(key)

    def close_all(self) -> None:
        """Close all files. A later `get` opens them again."""
        for key in self._keys():
            self.close(key)

    def _add(self, key: Key, made: Opened) -> Opened:
        with self._lock:
            opened = self._opened.setdefault(key, made)  # another thread's, if it was faster
            closed = [made] if opened is not made else []
            self._opened.move_to_end(key)
            while len(self._opened) > self._most:
                closed.append(self._opened.popitem(last=False)[1])
        for each in closed:
            each.close()
        return opened

    def _keys(self) -> list[Key]:
        with self._lock:
            return list(self._opened)
