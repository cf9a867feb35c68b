"""The command line of each process of Callslip."""

import sys

from config.settings import ApiSettings, Settings
from tasks.queues import BY_ROLE, Role

ROLES: tuple[Role, ...] = ("ingest", "search", "answer", "maintenance", "api")

LONGEST_REQUEST_LINE = 65_534
"""Bytes. A question of 4,000 Korean characters takes 36,000 in an address."""


def argv(role: Role, settings: Settings) -> list[str]:
    """How to start a process of this role, for exec or a supervisor."""
    if role == "api":
        return serving("api.wsgi:app", settings.api, _threads(settings.api))
    pool = {
        "ingest": ["--pool", "prefork", "--concurrency", str(settings.ingest.concurrency)],
        "search": ["--pool", "threads", "--concurrency", str(settings.search.threads)],
        "answer": ["--pool", "threads", "--concurrency", str(settings.agent.threads)],
        "maintenance": ["--pool", "threads", "--concurrency", "4", "--beat"],
    }[role]
    return [
        *(sys.executable, "-m", "celery", "--app", f"workers.{role}:app", "worker"),
        *("--hostname", f"{role}@%h", "--queues", ",".join(BY_ROLE[role])),
        *("--loglevel", settings.log.level, "--without-gossip", "--without-mingle"),
        "--without-heartbeat",
        *pool,
    ]


def serving(app: str, api: ApiSettings, threads: int) -> list[str]:
    """How to serve a WSGI app of ours over HTTP, at the host and port of these settings."""
    return [
        *(sys.executable, "-m", "gunicorn", app),
        *("--bind", f"{api.host}:{api.port}"),
        *("--worker-class", "gthread", "--workers", str(api.processes)),
        *("--threads", str(threads), "--timeout", "120"),
        *("--graceful-timeout", "5", "--log-level", "warning"),
        *("--no-control-socket", "--config", "python:workers.request_lines"),
        *("--limit-request-line", str(LONGEST_REQUEST_LINE)),
    ]


def _threads(api: ApiSettings) -> int:
    """Of one process: those that answer at once, and those that may be held for long."""
    return api.threads + api.streams + api.answers
