"""How many threads of this process may be held for long, so that others stay free."""

import threading
from collections.abc import Callable


class Places:
    """So many at a time as `most` says."""

    def __init__(self, most: Callable[[], int]) -> None:
        self._most = most
        self._lock, self._taken = threading.Lock(), 0

    def take(self) -> bool:
        """Take a place; false where all are taken."""
        with self._lock:
            free = self._taken < self._most()
            self._taken += free
            return free

    def give_back(self) -> None:
        """Give one back."""
        with self._lock:
            self._taken -= 1
