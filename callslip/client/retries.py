"""When a request is sent again, and how long is waited before."""

import random
import time
from dataclasses import dataclass, field

import httpx

from callslip.errors import CallslipError, DeskDown, Overloaded, TransientError

SHORTEST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
"""Seconds between streams, whatever the desk says."""

SHORTEST_BACKLOG, LONGEST_BACKLOG = 0.5, 60.0
"""Seconds that a file waits while too many documents do, whatever the desk says."""

AT_ONCE = 5.0
"""A stream that ends sooner and told nothing is empty; the desk ends those that wait after 600."""

MOST_EMPTY = 10
"""Streams in a row."""

_NEVER_ARRIVED = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


@dataclass(frozen=True)
class Retries:
    """Exponential waits with full jitter, never shorter than the desk's Retry-After.

    https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter has why full jitter.
    """

    most: int = 4
    """Times that a request is sent after the first."""
    within: float = 60.0
    """Seconds from the first; a wait that would end later is not begun, the error is raised."""
    first_wait: float = 0.5
    """Seconds, the upper end; doubled each time."""
    longest_wait: float = 30.0
    where_refused: bool = True
    """Whether an address where nothing listens is asked again."""
    but: tuple[type[TransientError], ...] = ()
    """What is raised at once."""

    def begun(self) -> "Tries":
        """The tries of one request."""
        return Tries(self)


NO_RETRIES = Retries(most=0)


@dataclass
class Tries:
    """How often one request was sent, since when."""

    _retries: Retries
    _began: float = field(default_factory=time.monotonic)
    _failed: int = 0

    def wait(self, error: CallslipError, *, repeatable: bool) -> float:
        """Seconds until the request may be sent again; raises the error where it may not.

        What is not repeatable is sent again only where it did no work: it never arrived, or was
        refused because too much waited.
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
        if not isinstance(error, DeskDown) or cause is None:
            wait += error.retry_after
        if time.monotonic() + wait > self._began + retries.within:
            raise error
        return wait


@dataclass
class Pauses:
    """The waits between streams that are taken up again and again."""

    _empty: int = 0

    def after(self, asked: float, *, has_told: bool, lasted: float) -> float:
        """Seconds until the next one, as the desk asked within bounds, doubled for each empty one.

        Raises DeskDown where too many in a row were empty.
        """
        self._empty = 0 if has_told or lasted >= AT_ONCE else self._empty + 1
        if self._empty >= MOST_EMPTY:
            raise DeskDown(f"{self._empty} streams in a row ended at once and told nothing")
        longer = max(SHORTEST_PAUSE, asked) * 2.0 ** max(0, self._empty - 1)
        return min(LONGEST_PAUSE, longer)


def backlog_wait(asked: float) -> float:
    """Seconds until a file is sent again that the desk had no place for."""
    return min(LONGEST_BACKLOG, max(SHORTEST_BACKLOG, asked))
