"""Replaces the processes of an ingest worker's pool that were idle for long: their memory goes.

A process that has ingested keeps the embedder, the entity recognizer and what their libraries took,
half a gigabyte. A new fork of the worker has none of it, and loads it with its first document.
"""

import logging
import os
import signal
import time
from typing import Any

from celery import Celery, bootsteps
from celery.worker import state

log = logging.getLogger(__name__)

EVERY_SECONDS = 1.0


class Idleness:
    """How long a pool that has worked is idle. All times are seconds of one monotonic clock."""

    def __init__(self, seconds: float) -> None:
        """A pool may be idle for `seconds`; 0: for ever."""
        self._seconds = seconds
        self._begun = 0
        self._worked_at: float | None = None

    def is_over(self, now: float, begun: int, *, busy: bool) -> bool:
        """Whether the pool has been idle for long enough; true once after each work.

        `begun` is the number of all tasks that the pool has begun.
        """
        if busy or begun != self._begun:
            self._begun, self._worked_at = begun, now
        if not self._seconds or self._worked_at is None or now - self._worked_at < self._seconds:
            return False
        self._worked_at = None
        return True


class RenewIdle(bootsteps.StartStopStep):
    """A bootstep of Celery's consumer. Its timer runs in the thread that hands out the tasks.

    So no task reaches a process between the look and the start of the new processes.
    """

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def __init__(self, parent: Any, **kwargs: Any) -> None:
        super().__init__(parent, **kwargs)
        self._idleness = Idleness(parent.app.callslip.settings.ingest.idle_seconds)
        self._timer: Any = None

    def start(self, parent: Any) -> None:
        """Start to look."""
        self._timer = parent.timer.call_repeatedly(EVERY_SECONDS, self._look, (parent.pool,))

    def stop(self, parent: Any) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self, pool: Any) -> None:
        busy, begun = bool(state.reserved_requests), state.all_total_count[0]
        if self._idleness.is_over(time.monotonic(), begun, busy=busy):
            log.info("the pool is idle: new processes replace those that hold models")
            renew(pool._pool)


def renew(pool: Any) -> None:
    """Replace the processes of Celery's prefork pool, none of which has a task.

    They are killed, since a process that ends by itself could be sent a task meanwhile.
    """
    alive = [process for process in pool._pool if process.exitcode is None]
    for process in alive:
        process._controlled_termination = True  # so that billiard logs no error
        os.kill(process.pid, signal.SIGKILL)
    for process in alive:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # the pool itself waits for it
    pool.maintain_pool()


def renew_when_idle(app: Celery) -> None:
    """Make the worker of this app, which has a prefork pool, replace idle processes."""
    app.steps["consumer"].add(RenewIdle)
