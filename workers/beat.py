"""Celery's scheduler, which goes on at once when the system's clock is set back."""

import time
from typing import Any

from celery.beat import Scheduler


class SteadyScheduler(Scheduler):
    """A scheduler that counts the intervals of all tasks anew when the clock is set back.

    Celery's own scheduler compares times of the wall clock: after a step back by an hour it would
    send nothing for an hour.
    """

    _latest = 0.0

    def tick(self, *args: Any, **kwargs: Any) -> float:
        """Send what is due; the seconds until the next call."""
        now = time.time()
        if now < self._latest:
            for entry in self.schedule.values():
                entry.last_run_at = entry.default_now()
            self._heap = None
        self._latest = now
        seconds: float = super().tick(*args, **kwargs)
        return seconds
