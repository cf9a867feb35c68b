"""The Redis broker: its address, its client, the length of its queues and their consumers."""

import time

import redis

from callslip.config.settings import Settings
from callslip.errors import BrokerDown, SettingsError
from callslip.tasks.queues import PRESENCE

COUNTED_SECONDS = 5.0
"""Seconds for which a count of processes is cached."""


def broker_url(settings: Settings) -> str:
    """The broker's address. Raises SettingsError if the settings have none."""
    if settings.broker.url is None:
        raise SettingsError(
            "broker.url is not set",
            hint="Start everything with `callslip up`, or set CALLSLIP_BROKER__URL.",
        )
    return settings.broker.url


def connect(settings: Settings) -> redis.Redis:
    """A client of the broker; it connects at its first command."""
    return redis.Redis.from_url(
        broker_url(settings),
        socket_connect_timeout=2,
        socket_timeout=60,
        health_check_interval=25,
    )


def backlog(broker: redis.Redis, queue: str) -> int:
    """The number of messages in a queue. Raises BrokerDown if the broker does not answer."""
    try:
        return int(broker.llen(queue))
    except redis.RedisError as error:
        raise BrokerDown(f"the broker does not answer: {type(error).__name__}") from error


def readers(broker: redis.Redis, queue: str) -> int:
    """The number of workers that read a queue. Raises BrokerDown if the broker does not answer."""
    try:
        return sum(1 for _ in broker.scan_iter(match=f"{PRESENCE}:{queue}:*", count=1000))
    except redis.RedisError as error:
        raise BrokerDown(f"the broker does not answer: {type(error).__name__}") from error


class ProcessCounts:
    """Counts the processes that work on each queue, from the keys that their workers write."""

    def __init__(self, broker: redis.Redis) -> None:
        self._broker = broker
        self._counted: dict[str, tuple[float, int]] = {}

    def of(self, queue: str) -> int:
        """The number of processes of a queue, at most a few seconds old; 0 if it is unknown."""
        at, count = self._counted.get(queue, (-COUNTED_SECONDS, 0))
        if time.monotonic() - at < COUNTED_SECONDS:
            return count
        try:
            keys = list(self._broker.scan_iter(match=f"{PRESENCE}:{queue}:*", count=1000))
            count = sum(int(value) for value in self._broker.mget(keys) if value) if keys else 0
        except redis.RedisError:
            count = 0
        self._counted[queue] = time.monotonic(), count
        return count
