"""Announces which queues each worker reads, so that a queue without a reader is noticed.

A consumer writes a key for each queue; the key expires unless the consumer writes it again. The
timer belongs to the consumer, so the keys of a worker that hangs or lost its broker expire. A
worker that is stalled writes no keys, and kills a process of its pool that was stopped, so that the
pool replaces it.
"""

import logging
import os
import signal
import socket
import time
from contextlib import suppress
from typing import Any

import psutil
import redis
from celery import Celery, bootsteps
from celery.worker import state

from callslip.config.settings import Settings
from callslip.tasks.composition import Context
from callslip.tasks.queues import ALL, ANSWER, PRESENCE, SEARCH
from callslip.tasks.shared.broker import as_broker_down
from callslip.workers.pool.stall import Stall

log = logging.getLogger(__name__)

EVERY_SECONDS = 1.0
EXPIRES_SECONDS = 6

STOPPED_SECONDS = 5.0
"""Seconds for which a process of the pool may be stopped, for instance by a debugger."""


class Presence(bootsteps.StartStopStep):
    """A bootstep of Celery's consumer, which starts when the consumer has begun to read queues."""

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def __init__(self, parent: Any, **kwargs: Any) -> None:
        super().__init__(parent, **kwargs)
        self._timer: Any = None
        self._context: Context = parent.app.callslip
        self._queues: list[str] = []
        self._keys: list[str] = []
        self._pool: Any = None
        self._processes = 1
        self._stall: Stall | None = None
        self._stopped: dict[int, float] = {}

    def start(self, parent: Any) -> None:
        """Start to write the keys, the first time at once."""
        me = f"{socket.gethostname()}:{os.getpid()}"
        self._queues = [queue.name for queue in parent.task_consumer.queues]
        self._keys = [f"{PRESENCE}:{name}:{me}" for name in self._queues]
        self._pool, self._processes = parent.pool, parent.controller.concurrency
        self._stall = Stall(self._processes, _longest(self._context.settings, self._queues))
        self._write()
        self._timer = parent.timer.call_repeatedly(EVERY_SECONDS, self._write)

    def stop(self, parent: Any) -> None:
        """Delete the keys at once."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        try:
            if self._keys:
                self._context.broker.delete(*self._keys)
        except redis.RedisError:
            log.debug("the broker went first")

    def _write(self) -> None:
        self._replace_stopped()
        broker = self._context.broker
        try:
            waiting = sum(int(broker.llen(name)) for name in self._queues)
            if self._is_stalled(waiting):
                return
            pipeline = broker.pipeline(transaction=False)
            for key in self._keys:
                pipeline.set(key, self._processes, ex=EXPIRES_SECONDS)
            pipeline.execute()
        except redis.RedisError as error:
            log.warning("cannot announce: %s", type(error).__name__)

    def _is_stalled(self, waiting: int) -> bool:
        tasks = set(state.active_requests)
        taken = tasks or set(state.reserved_requests)
        why = self._stall.look(time.monotonic(), waiting, taken) if self._stall else ""
        if why:
            log.error("stalled: %s", why)
        return bool(why)

    def _replace_stopped(self) -> None:
        """Kill the processes of the pool that are stopped for too long: their leases run out."""
        now, stopped = time.monotonic(), {}
        for pid in self._pool.info.get("processes", ()):
            with suppress(psutil.NoSuchProcess):
                if psutil.Process(pid).status() == psutil.STATUS_STOPPED:
                    stopped[pid] = self._stopped.get(pid, now)
        for pid, since in stopped.items():
            if now - since > STOPPED_SECONDS:
                log.error("process %d of the pool is stopped: it is replaced", pid)
                os.kill(pid, signal.SIGKILL)
        self._stopped = stopped


def _longest(settings: Settings, queues: list[str]) -> float | None:
    """Seconds that no task of these queues takes; None if tasks may take as long as they like."""
    if queues == [SEARCH]:
        return 2 * settings.search.timeout_seconds + 5
    if queues == [ANSWER]:
        return 2 * settings.agent.timeout_seconds + 5
    return None


def announce(app: Celery) -> None:
    """Make the workers of this app announce the queues that they read."""
    app.steps["consumer"].add(Presence)


def consumers(broker: redis.Redis) -> dict[str, int]:
    """The number of workers that read each queue now, by queue.

    Raises BrokerDown if the broker does not answer.
    """
    with as_broker_down():
        counts = dict.fromkeys(ALL, 0)
        for key in broker.scan_iter(match=f"{PRESENCE}:*", count=1000):
            queue = key.decode().split(":")[1]
            counts[queue] = counts.get(queue, 0) + 1
    return counts
