"""Builds the command line of each process of Callslip."""

import sys

from callslip.config.settings import ApiSettings, Settings
from callslip.tasks.queues import BY_ROLE, Role

ROLES: tuple[Role, ...] = ("ingest", "search", "answer", "maintenance", "api")

LONGEST_REQUEST_LINE = 65_534
"""The maximum in bytes. A question of 4,000 Korean characters takes 36,000 in a URL."""


def argv(role: Role, settings: Settings) -> list[str]:
    """The command line that starts a process of this role, for exec or a supervisor."""
    if role == "api":
        return serving("callslip.api.wsgi:app", settings.api, _threads(settings.api))
    pool = {
        "ingest": ["--pool", "prefork", "--concurrency", str(settings.ingest.concurrency)],
        "search": ["--pool", "threads", "--concurrency", str(settings.search.threads)],
        "answer": ["--pool", "threads", "--concurrency", str(settings.agent.threads)],
        "maintenance": ["--pool", "threads", "--concurrency", "4", "--beat"],
    }[role]
    return [
        *(sys.executable, "-m", "celery", "--app", f"callslip.workers.{role}:app", "worker"),
        *("--hostname", f"{role}@%h", "--queues", ",".join(BY_ROLE[role])),
        *("--loglevel", settings.log.level, "--without-gossip", "--without-mingle"),
        "--without-heartbeat",
        *pool,
    ]


def serving(app: str, api: ApiSettings, threads: int) -> list[str]:
    """The command line that serves a WSGI app at the host and port of the settings."""
    return [
        *(sys.executable, "-m", "gunicorn", app),
        *("--bind", f"{api.host}:{api.port}"),
        *("--worker-class", "gthread", "--workers", str(api.processes)),
        *("--threads", str(threads), "--timeout", "120"),
        *("--graceful-timeout", "5", "--log-level", "warning"),
        *("--no-control-socket", "--config", "python:callslip.api.gunicorn_config"),
        *("--limit-request-line", str(LONGEST_REQUEST_LINE)),
    ]


def _threads(api: ApiSettings) -> int:
    """The threads of one process: those for short requests, and those for streams and answers."""
    return api.threads + api.streams + api.answers
