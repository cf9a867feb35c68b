"""Limits how many threads of this process wait for long, so that other threads stay free."""

import threading


class Slots:
    """A bounded number of requests that wait at the same time. Threads may share it."""

    def __init__(self) -> None:
        self._lock, self._taken = threading.Lock(), 0

    def take(self, most: int) -> bool:
        """Take a slot; return False if `most` or more slots are taken."""
        with self._lock:
            free = self._taken < most
            self._taken += free
            return free

    def give_back(self) -> None:
        """Give a slot back."""
        with self._lock:
            self._taken -= 1
