"""Restarts the store that the checks of `workers.store_checks` ask to restart."""

import threading
import time
from collections.abc import Callable, Sequence

import redis

from callslip.tasks.shared import store_health

LOOK_SECONDS = 1.0
"""Seconds between two looks of `callslip up` whether a store is to be restarted."""


def restart_stores(
    broker: redis.Redis, kinds: Sequence[str], restart: Callable[[str, str], None]
) -> None:
    """Start a thread that calls `restart` with the kind and the reason whenever one is requested.

    The thread ends with the process.
    """

    def look() -> None:
        while True:
            time.sleep(LOOK_SECONDS)
            for kind in kinds:
                try:
                    reason = store_health.take_restart(broker, kind)
                except redis.RedisError:
                    continue
                if reason:
                    restart(kind, reason)

    threading.Thread(target=look, name="store-restarts", daemon=True).start()
