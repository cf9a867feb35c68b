"""Tells whether the worker of this machine reads its queues: `python -m callslip.workers.health
search`, for the health checks of containers. The exit code is 0 if it does.

`health keyword` tells whether the service of the keyword index on this machine answers.
"""

import socket
import sys
from contextlib import closing

import redis

from callslip.config import get_settings
from callslip.config.settings import KeywordSettings
from callslip.errors import KeywordsDown, SettingsError
from callslip.stores.fulltext.service import KeywordService
from callslip.tasks.queues import BY_ROLE, PRESENCE
from callslip.tasks.shared.broker import connect

SECONDS = 3.0

LOCAL_HOST = "127.0.0.1"
ANY_ADDRESS = ("0.0.0.0", "::", "")  # noqa: S104


def is_present(broker: redis.Redis, queues: tuple[str, ...]) -> bool:
    """Whether a worker of this machine announces all queues. Raises redis.RedisError."""
    host = socket.gethostname()
    return all(
        any(True for _ in broker.scan_iter(match=f"{PRESENCE}:{queue}:{host}:*", count=1000))
        for queue in queues
    )


def fault(role: str) -> str:
    """What is wrong with the worker of a role; empty if it reads its queues."""
    if role == "keyword":
        return keyword_fault(get_settings().keyword)
    if role not in BY_ROLE:
        return f"{role!r} is no worker: {', '.join(BY_ROLE)}, keyword"
    try:
        with connect(get_settings(), SECONDS) as broker:
            if is_present(broker, BY_ROLE[role]):
                return ""
    except SettingsError as error:
        return error.detail
    except redis.RedisError as error:
        return f"the broker does not answer: {type(error).__name__}"
    return f"no {role} worker of this machine reads its queues"


def keyword_fault(settings: KeywordSettings) -> str:
    """What is wrong with the service of the keyword index of this machine; empty if it answers."""
    if settings.key is None:
        return "keyword.key is not set"
    here = LOCAL_HOST if settings.host in ANY_ADDRESS else settings.host
    url = f"http://[{here}]" if ":" in here else f"http://{here}"
    local = settings.model_copy(update={"url": f"{url}:{settings.port}"})
    try:
        with closing(KeywordService(local)) as service:
            service.ping(SECONDS)
    except KeywordsDown as error:
        return error.detail
    return ""


if __name__ == "__main__":
    sys.exit(fault("".join(sys.argv[1:2])) or 0)
