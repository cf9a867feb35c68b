"""Limits how many threads of this process wait for long, so that other threads stay free."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from callslip.errors import Overloaded


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

    @contextmanager
    def reserve(self, most: int, what: str) -> Iterator[None]:
        """Take a slot for a block of code.

        Raises Overloaded with `most`, and `what` they do, if no slot is free.
        """
        if not self.take(most):
            raise Overloaded(f"{most} {what} already")
        try:
            yield
        finally:
            self.give_back()

    def give_back(self) -> None:
        """Give a slot back."""
        with self._lock:
            self._taken -= 1
