"""The Redis broker: its address, its client, the length of its queues and their consumers."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.parse import unquote

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from redis.sentinel import Sentinel

from callslip.config.sections.servers import SENTINEL_PORT
from callslip.config.settings import Settings
from callslip.errors import BrokerDown, Overloaded, SettingsError
from callslip.stores.servers.breaker import Breaker
from callslip.tasks.queues import PRESENCE

T = TypeVar("T")

COUNTED_SECONDS = 5.0
"""Seconds for which a count of processes is cached."""

CHECKED_SECONDS = 1.0
"""Seconds for which it is believed that a queue has a reader."""

LONGEST_CALL = 2.0
"""Seconds that a call to the broker takes at most: it answers within milliseconds, or it hangs."""

SHORTEST_CALL = 1.0
"""The least limit of a call in seconds: twice `LONGEST_POP` of `tasks.shared.replies`."""


def broker_url(settings: Settings) -> str:
    """The broker's address. Raises SettingsError if the settings have none."""
    if settings.broker.url is None:
        raise SettingsError(
            "broker.url is not set",
            hint="Start everything with `callslip up`, or set CALLSLIP_BROKER__URL.",
        )
    return settings.broker.url


def call_seconds(settings: Settings) -> float:
    """Seconds that a process waits for a response of the broker: less than a request's deadline."""
    return max(SHORTEST_CALL, min(LONGEST_CALL, settings.search.timeout_seconds / 4))


def connect(settings: Settings, seconds: float | None = None) -> redis.Redis:
    """A client of the broker, or of the master that its Sentinels name; it connects at its first
    command.

    A command on a broken connection is sent once more, on another one. A command without a response
    within `seconds`, by default `call_seconds`, raises redis.TimeoutError.
    """
    seconds = call_seconds(settings) if seconds is None else seconds
    options: dict[str, Any] = {
        "socket_connect_timeout": seconds,
        "socket_timeout": seconds,
        "health_check_interval": 25,
        "retry": Retry(NoBackoff(), 1, supported_errors=(redis.ConnectionError,)),
    }
    addresses = settings.broker.sentinels
    if not addresses:
        return redis.Redis.from_url(broker_url(settings), **options)
    master = addresses[0]
    sentinels: Any = Sentinel(  # type: ignore[no-untyped-call]
        [(str(address.hostname), address.port or SENTINEL_PORT) for address in addresses],
        sentinel_kwargs=_of_sentinels(settings, seconds),
        **options,
    )
    client: redis.Redis = sentinels.master_for(
        settings.broker.master_name,
        username=unquote(master.username or "") or None,
        password=unquote(master.password or "") or None,
        db=int(master.path.removeprefix("/") or 0),
    )
    return client


def celery_url(settings: Settings) -> str:
    """The broker's address as Celery spells it. Raises SettingsError if the settings have none."""
    url, addresses = broker_url(settings), settings.broker.sentinels
    if url.startswith("unix://"):
        return url.replace("unix://", "redis+socket://", 1).replace("?db=", "?virtual_host=")
    if not addresses:
        return url
    user, at, _ = addresses[0].netloc.rpartition("@")  # Celery may begin with any of them
    hosts = [address.netloc.rpartition("@")[2] for address in addresses]
    return ";".join(addresses[0]._replace(netloc=user + at + host).geturl() for host in hosts)


def celery_options(settings: Settings) -> dict[str, Any]:
    """What Celery has to know of Sentinels."""
    if not settings.broker.sentinels:
        return {}
    return {
        "master_name": settings.broker.master_name,
        "sentinel_kwargs": _of_sentinels(settings, call_seconds(settings)),
    }


def _of_sentinels(settings: Settings, seconds: float) -> dict[str, Any]:
    """The options of the clients of Sentinels, each of which is called once."""
    secret = settings.broker.sentinel_password
    return {
        "password": secret.get_secret_value() if secret else None,
        "socket_connect_timeout": seconds,
        "socket_timeout": seconds,
        "retry": Retry(NoBackoff(), 0),
    }


@contextmanager
def as_broker_down() -> Iterator[None]:
    """Raise BrokerDown for an error of the broker's client."""
    try:
        yield
    except redis.RedisError as error:
        raise BrokerDown(f"the broker does not answer: {type(error).__name__}") from error


def ping(broker: redis.Redis) -> None:
    """Raise BrokerDown unless the broker answers within the time limit of this client."""
    with as_broker_down():
        broker.ping()


def backlog(broker: redis.Redis, queue: str) -> int:
    """The number of messages in a queue. Raises BrokerDown if the broker does not answer."""
    with as_broker_down():
        return int(broker.llen(queue))


def consumers(broker: redis.Redis, queue: str) -> int:
    """The number of workers that read a queue. Raises BrokerDown if the broker does not answer."""
    with as_broker_down():
        return sum(1 for _ in broker.scan_iter(match=f"{PRESENCE}:{queue}:*", count=1000))


class Consumers:
    """Refuses a request whose queue no worker reads, instead of letting it wait in vain."""

    def __init__(self, broker: redis.Redis, ping: Callable[[], object]) -> None:
        """`ping` raises BrokerDown unless the broker answers within `breaker.PING_SECONDS`."""
        self._broker = broker
        self._breaker = Breaker("the broker", ping, BrokerDown)
        self._seen: dict[str, float] = {}
        self._down: tuple[float, BrokerDown] | None = None

    def check(self, queue: str) -> None:
        """Raise Overloaded if no worker reads the queue, BrokerDown if the broker is down.

        For CHECKED_SECONDS after the broker did not answer no call is sent, which would take
        LONGEST_CALL.
        """
        self._breaker.check()
        if time.monotonic() - self._seen.get(queue, -CHECKED_SECONDS) < CHECKED_SECONDS:
            return
        if self._down is not None and time.monotonic() - self._down[0] < CHECKED_SECONDS:
            raise BrokerDown(self._down[1].detail)
        try:
            count = consumers(self._broker, queue)
        except BrokerDown as error:
            self._down = time.monotonic(), error
            raise
        if not count:
            raise Overloaded(
                f"no worker reads the queue {queue!r}",
                hint="Wait until its worker is started again, or start one: `callslip up` starts"
                " all parts, `callslip run` one of them.",
            )
        self._seen[queue] = time.monotonic()

    def call(self, act: Callable[[], T], seconds: float) -> T:
        """The result of `act`, which uses the broker for at most `seconds`.

        Raises BrokerDown once the broker does not answer a ping.
        """
        return self._breaker.call(act, seconds)


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
