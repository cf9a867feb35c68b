"""The time of a request as a whole, which httpx does not count: it counts each of its parts."""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import anyio

from callslip.errors import DeskDown


class Deadline:
    """Looked at between the parts of an answer: nothing interrupts a thread that waits for one."""

    def __init__(self, seconds: float, url: str) -> None:
        self._seconds, self._url = seconds, url
        self._until = time.monotonic() + seconds

    @classmethod
    @contextmanager
    def begun(cls, seconds: float, url: str) -> Iterator["Deadline"]:
        """DeskDown after so many seconds."""
        yield cls(seconds, url)

    def told(self, event: str, _: dict[str, Any]) -> None:
        """What httpcore is at; the body of a request takes the time that it takes."""
        if ".send_request_body." in event:
            self._set(math.inf if event.endswith(".started") else self._seconds)

    def look(self) -> None:
        """DeskDown where it is over."""
        if time.monotonic() > self._until:
            raise self.missed()

    def missed(self) -> DeskDown:
        """What is raised then."""
        return DeskDown(f"no whole answer from {self._url} in {self._seconds:g} s")

    def _set(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds


class AsyncDeadline(Deadline):
    """Interrupts whatever is awaited."""

    def __init__(self, seconds: float, url: str) -> None:
        super().__init__(seconds, url)
        self._scope = anyio.CancelScope(deadline=anyio.current_time() + seconds)

    @classmethod
    @contextmanager
    def begun(cls, seconds: float, url: str) -> Iterator["AsyncDeadline"]:
        """DeskDown after so many seconds."""
        deadline = cls(seconds, url)
        with deadline._scope:
            yield deadline
        if deadline._scope.cancelled_caught:
            raise deadline.missed()

    async def told(self, event: str, info: dict[str, Any]) -> None:  # type: ignore[override]
        """What httpcore is at; the body of a request takes the time that it takes."""
        super().told(event, info)

    def _set(self, seconds: float) -> None:
        super()._set(seconds)
        self._scope.deadline = anyio.current_time() + seconds
