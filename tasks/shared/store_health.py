"""What the last probe of each store showed. The maintenance worker writes it into the broker."""

import json
import time
from dataclasses import asdict, dataclass

import redis

STALE_PROBES = 3
"""After this many intervals without a new probe, the last result says nothing."""

_HEALTH, _RESTART = "store-health", "store-restart"

RESTART_SECONDS = 60
"""Seconds after which a request to restart a store expires, if no `callslip up` runs the store."""


@dataclass(frozen=True)
class Health:
    """The result of the last probe of a store. Times are UTC seconds since 1970.

    `reason` says why the probe failed, and is empty if it did not. `failures` are the failed probes
    in a row since the last request to restart the store, `well_at` is the time of the last probe
    that did not fail. `was_full` is set from a probe that met a full disk until the store has been
    restarted. `started` is when the process of a store on this machine was started, or 0.
    """

    checked_at: float
    reason: str = ""
    well_at: float = 0.0
    failures: int = 0
    was_full: bool = False
    started: float = 0.0


def read(broker: redis.Redis, kind: str) -> Health | None:
    """The last result of a store's probes; None if there is none. Raises redis.RedisError."""
    value = broker.hget(_HEALTH, kind)
    return Health(**json.loads(value)) if value else None


def write(broker: redis.Redis, kind: str, health: Health) -> None:
    """Replace the result of a store's probes. Raises redis.RedisError."""
    broker.hset(_HEALTH, kind, json.dumps(asdict(health)))


def faults(broker: redis.Redis, probe_seconds: float) -> dict[str, str]:
    """Why a store is not ready, by kind, for each store whose last probe failed.

    A result older than STALE_PROBES intervals does not count. Raises redis.RedisError.
    """
    reasons = {}
    for kind, value in broker.hgetall(_HEALTH).items():
        health, now = Health(**json.loads(value)), time.time()
        if health.reason and now - health.checked_at < STALE_PROBES * probe_seconds:
            reasons[_text(kind)] = (
                f"{health.reason} It was last well {now - health.well_at:.0f} s ago."
            )
    return reasons


def request_restart(broker: redis.Redis, kind: str, reason: str) -> None:
    """Ask the `callslip up` that runs the store to restart it. Raises redis.RedisError."""
    broker.set(f"{_RESTART}:{kind}", reason, ex=RESTART_SECONDS)


def take_restart(broker: redis.Redis, kind: str) -> str:
    """Take the reason of a request to restart the store; empty if there is none.

    Raises redis.RedisError.
    """
    reason = broker.getdel(f"{_RESTART}:{kind}")
    return _text(reason) if reason else ""


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value
