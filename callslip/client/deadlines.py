"""Deadlines for whole responses; the timeouts of httpx bound only each part of a response."""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import anyio

from callslip.errors import ServerDown


class Deadline:
    """A deadline that the client checks between the parts of a response.

    Nothing interrupts a thread that waits for a part; httpx bounds this wait."""

    def __init__(self, seconds: float, url: str) -> None:
        self._seconds, self._url = seconds, url
        self._until = time.monotonic() + seconds

    @classmethod
    @contextmanager
    def begun(cls, seconds: float, url: str) -> Iterator["Deadline"]:
        """Start a deadline that ends after `seconds`."""
        yield cls(seconds, url)

    def on_trace_event(self, event: str, _: dict[str, Any]) -> None:
        """Restart the deadline after the request's body: httpcore's trace hook."""
        if ".send_request_body." in event:
            self._set(math.inf if event.endswith(".started") else self._seconds)

    def look(self) -> None:
        """Raise ServerDown if the deadline has passed."""
        if time.monotonic() > self._until:
            raise self.missed()

    def missed(self) -> ServerDown:
        """The error of a missed deadline."""
        return ServerDown(f"no whole answer from {self._url} in {self._seconds:g} s")

    def _set(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds


class AsyncDeadline(Deadline):
    """A deadline that cancels the pending await."""

    def __init__(self, seconds: float, url: str) -> None:
        super().__init__(seconds, url)
        self._scope = anyio.CancelScope(deadline=anyio.current_time() + seconds)

    @classmethod
    @contextmanager
    def begun(cls, seconds: float, url: str) -> Iterator["AsyncDeadline"]:
        """Start a deadline that raises ServerDown after `seconds`."""
        deadline = cls(seconds, url)
        with deadline._scope:
            yield deadline
        if deadline._scope.cancelled_caught:
            raise deadline.missed()

    async def on_trace_event(self, event: str, info: dict[str, Any]) -> None:  # type: ignore[override]
        """Restart the deadline after the request's body: httpcore's trace hook."""
        super().on_trace_event(event, info)

    def _set(self, seconds: float) -> None:
        super()._set(seconds)
        self._scope.deadline = anyio.current_time() + seconds
