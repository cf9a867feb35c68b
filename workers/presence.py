"""Announces which queues each worker reads, so that a queue without a reader is noticed.

A consumer writes a key for each queue; the key expires unless the consumer writes it again. The
timer belongs to the consumer, so the keys of a worker that hangs or lost its broker expire.
"""

import logging
import os
import socket
from typing import Any

import redis
from celery import Celery, bootsteps

from callslip.errors import BrokerDown
from callslip.tasks.composition import Context
from callslip.tasks.queues import ALL, PRESENCE

log = logging.getLogger(__name__)

EVERY_SECONDS = 2.0
EXPIRES_SECONDS = 10


class Presence(bootsteps.StartStopStep):
    """A bootstep of Celery's consumer, which starts when the consumer has begun to read queues."""

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def __init__(self, parent: Any, **kwargs: Any) -> None:
        super().__init__(parent, **kwargs)
        self._timer: Any = None
        self._context: Context = parent.app.callslip
        self._keys: list[str] = []
        self._processes = 1

    def start(self, parent: Any) -> None:
        """Start to write the keys, the first time at once."""
        me = f"{socket.gethostname()}:{os.getpid()}"
        self._keys = [f"{PRESENCE}:{q.name}:{me}" for q in parent.task_consumer.queues]
        self._processes = parent.controller.concurrency
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
        try:
            pipeline = self._context.broker.pipeline(transaction=False)
            for key in self._keys:
                pipeline.set(key, self._processes, ex=EXPIRES_SECONDS)
            pipeline.execute()
        except redis.RedisError as error:
            log.warning("cannot announce: %s", type(error).__name__)


def announce(app: Celery) -> None:
    """Make the workers of this app announce the queues that they read."""
    app.steps["consumer"].add(Presence)


def consumers(broker: redis.Redis) -> dict[str, int]:
    """The number of workers that read each queue now, by queue.

    Raises BrokerDown if the broker does not answer.
    """
    try:
        counts = dict.fromkeys(ALL, 0)
        for key in broker.scan_iter(match=f"{PRESENCE}:*", count=1000):
            queue = key.decode().split(":")[1]
            counts[queue] = counts.get(queue, 0) + 1
    except redis.RedisError as error:
        raise BrokerDown(f"the broker does not answer: {type(error).__name__}") from error
    return counts
