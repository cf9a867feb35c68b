"""Decides when a running part is hung: it has shown no progress for longer than its patience."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress

PROBE_EVERY = 1.0
"""Seconds between two probes of a part."""

QUIET = 3.0
"""Seconds without progress after which a part excuses the parts that need it."""

RECOVERY = 45.0
"""Seconds that a part has to show progress after the last excuse: it must connect again."""


class Progress:
    """When a part last showed progress. All times are seconds of one monotonic clock."""

    def __init__(self, patience: float, now: float) -> None:
        """Begin with a part that has just become ready; it is hung after `patience` seconds."""
        self._patience = patience
        self._shown = now
        self._deadline = now + patience

    def show(self, at: float) -> None:
        """Record that the part showed progress."""
        if at > self._shown:
            self._shown, self._deadline = at, at + self._patience

    def excuse(self, now: float) -> None:
        """Record that the part cannot show progress now, for a reason outside the part."""
        self._deadline = max(self._deadline, now + RECOVERY)

    def silence(self, now: float) -> float:
        """Seconds since the part last showed progress."""
        return now - self._shown

    def is_quiet(self, now: float) -> bool:
        """Whether the parts that need this one are excused."""
        return self.silence(now) > QUIET

    def is_hung(self, now: float) -> bool:
        """Whether the patience is over."""
        return now > self._deadline


class Prober:
    """Probes one process in a thread, so that a probe that blocks delays nothing else.

    `shown` is when the last probe that returned True began, by the monotonic clock; `blind` tells
    whether the last probe could not see the process's progress.
    """

    def __init__(self, works: Callable[[int], bool | None], pid: int) -> None:
        self.shown, self.blind = 0.0, False
        self._works, self._pid = works, pid
        self._stopped = threading.Event()
        threading.Thread(target=self._run, name="prober", daemon=True).start()

    def stop(self) -> None:
        """Probe no more; a probe in progress ends by itself."""
        self._stopped.set()

    def _run(self) -> None:
        while not self._stopped.wait(PROBE_EVERY):
            begun = time.monotonic()
            seen: bool | None = False
            with suppress(Exception):  # whatever fails, the part has shown no progress
                seen = self._works(self._pid)
            self.blind = seen is None
            if seen:
                self.shown = begun
