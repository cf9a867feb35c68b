"""Refuses calls at once while a server does not answer, and ends those in flight (circuit breaker).

Only a ping decides whether the server answers: a slow query does not make it count as down.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Any, TypeVar

from callslip.errors import StoreDown, TransientError
from callslip.http import deadline
from callslip.reused_threads import ReusedThreads

PING_EVERY = 0.5
"""Seconds between two pings."""

PING_SECONDS = 1.0
"""The time limit in seconds of a ping; the servers answer within milliseconds."""

T = TypeVar("T")


class Breaker:
    """Opens when the server does not answer a ping, and closes when it answers one again.

    The pings begin with the first call of a search, or with the first call that fails, and go on
    until `close`: so a fault is known before the next search. Create it after the fork.
    """

    def __init__(
        self, server: str, ping: Callable[[], object], down: type[TransientError] = StoreDown
    ) -> None:
        """`ping` raises `down` if there is no answer within PING_SECONDS.

        `server` is the name of the server for messages.
        """
        self._server, self._ping, self._error = server, ping, down
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._now, self._closed = threading.Event(), False
        self._since: float | None = None
        self._in_flight: set[Future[Any]] = set()
        self._threads = ReusedThreads()

    def check(self) -> None:
        """Raise the error if the server has not answered the last ping."""
        if (since := self._since) is not None:
            raise self._down(since)

    def call(self, act: Callable[[], T], seconds: float | None = None) -> T:
        """The result of `act`, which sends requests to the server.

        `act` may take `seconds`, by default until the deadline. With either, it runs in another
        thread, which is left to its own time limits once the server does not answer a ping or the
        time is over; then the error is raised.
        """
        self.check()
        left = deadline.left() if seconds is None else seconds
        try:
            return act() if left is None else self._cut_short(act, left)
        except self._error:
            self._watch()
            self._now.set()
            raise

    def close(self) -> None:
        """End the pings, and wait for the one that is under way: it uses the caller's sockets."""
        self._closed = True
        self._now.set()
        with self._lock:
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(PING_SECONDS)

    def _cut_short(self, act: Callable[[], T], seconds: float) -> T:
        self._watch()
        call = self._threads.submit(act)
        with self._lock:
            self._in_flight.add(call)
        try:
            return call.result(seconds)
        except TimeoutError as error:
            if call.done():
                raise
            raise self._error(f"{self._server} did not answer in time.") from error
        finally:
            with self._lock:
                self._in_flight.discard(call)

    def _watch(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._pings, name="breaker", daemon=True)
                self._thread.start()

    def _pings(self) -> None:
        while not self._closed:
            begun = time.monotonic()
            try:
                self._ping()
            except self._error:
                self._open(begun)
            except Exception:  # such as a refused key: there is an answer
                self._since = None
            else:
                self._since = None
            self._now.wait(PING_EVERY)
            self._now.clear()

    def _open(self, since: float) -> None:
        with self._lock:
            self._since = self._since or since
            for call in self._in_flight:
                with suppress(InvalidStateError):
                    call.set_exception(self._down(self._since))

    def _down(self, since: float) -> TransientError:
        seconds = time.monotonic() - since
        return self._error(f"{self._server} has not answered for {seconds:.1f} s.")
