"""Retries: when the client sends a request again, and how long it waits before."""

import random
import time
from dataclasses import dataclass, field

import httpx

from callslip.errors import CallslipError, Overloaded, ServerDown, TransientError

SHORTEST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
"""Bounds of the seconds between two streams; the server's value is limited to them."""

SHORTEST_BACKLOG, LONGEST_BACKLOG = 0.5, 60.0
"""Bounds of the seconds that a file waits while the server's backlog is full."""

AT_ONCE = 5.0
"""Seconds: a stream that ends sooner without an event is empty; the server ends one after 600."""

MOST_EMPTY = 10
"""The number of empty streams in a row that raises ServerDown."""

_NEVER_ARRIVED = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


@dataclass(frozen=True)
class Retries:
    """Exponential waits with full jitter, never shorter than the server's Retry-After.

    https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter has why full jitter.
    """

    most: int = 4
    """The number of retries after the first try."""
    within: float = 60.0
    """Seconds from the first try; if a wait would end later, the error is raised instead."""
    first_wait: float = 0.5
    """Seconds: the upper bound of the first random wait; it doubles at each retry."""
    longest_wait: float = 30.0
    where_refused: bool = True
    """Whether a refused connection is tried again."""
    but: tuple[type[TransientError], ...] = ()
    """Errors that are raised without a retry."""

    def begun(self) -> "Tries":
        """Start counting the tries of one request."""
        return Tries(self)


NO_RETRIES = Retries(most=0)


@dataclass
class Tries:
    """Counts the failed tries of one request, and the time since the first."""

    _retries: Retries
    _began: float = field(default_factory=time.monotonic)
    _failed: int = 0

    def wait(self, error: CallslipError, *, repeatable: bool) -> float:
        """Seconds until the request may be sent again; raises the error if it may not.

        A request that is not repeatable is sent again only if the server did no work for it:
        the connection failed, or the server was overloaded.
        """
        retries, self._failed = self._retries, self._failed + 1
        too_often = self._failed > retries.most
        if not isinstance(error, TransientError) or isinstance(error, retries.but) or too_often:
            raise error
        cause = error.__cause__
        did_no_work = isinstance(error, Overloaded) or isinstance(cause, _NEVER_ARRIVED)
        if not (repeatable or did_no_work):
            raise error
        if isinstance(cause, httpx.ConnectError) and not retries.where_refused:
            raise error
        longest = min(retries.longest_wait, retries.first_wait * 2 ** (self._failed - 1))
        wait = random.uniform(0, longest)  # noqa: S311 - no secret
        if not isinstance(error, ServerDown) or cause is None:
            wait += error.retry_after
        if time.monotonic() + wait > self._began + retries.within:
            raise error
        return wait


@dataclass
class Pauses:
    """Computes the waits between streams that the client resumes."""

    _empty: int = 0

    def after(self, retry_seconds: float, *, had_events: bool, lasted: float) -> float:
        """Seconds until the next stream: `retry_seconds`, doubled for each empty stream, bounded.

        Raises ServerDown after MOST_EMPTY empty streams in a row.
        """
        self._empty = 0 if had_events or lasted >= AT_ONCE else self._empty + 1
        if self._empty >= MOST_EMPTY:
            raise ServerDown(f"{self._empty} streams in a row ended at once without an event")
        longer = max(SHORTEST_PAUSE, retry_seconds) * 2.0 ** max(0, self._empty - 1)
        return min(LONGEST_PAUSE, longer)


def backlog_wait(retry_seconds: float) -> float:
    """Seconds until the client sends a file again after BacklogFull."""
    return min(LONGEST_BACKLOG, max(SHORTEST_BACKLOG, retry_seconds))
