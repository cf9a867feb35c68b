"""The command line of each process of Callslip."""

import sys

from config.settings import Settings
from tasks.queues import BY_ROLE, Role

ROLES: tuple[Role, ...] = ("ingest", "search", "maintenance", "api")


def argv(role: Role, settings: Settings) -> list[str]:
    """How to start a process of this role, for exec or a supervisor."""
    if role == "api":
        return [
            *(sys.executable, "-m", "gunicorn", "api.wsgi:app"),
            *("--bind", f"{settings.api.host}:{settings.api.port}"),
            *("--worker-class", "gthread", "--workers", str(settings.api.processes)),
            *("--threads", str(settings.api.threads + settings.api.streams), "--timeout", "120"),
            *("--graceful-timeout", "5", "--log-level", "warning"),
            "--no-control-socket",
        ]
    pool = {
        "ingest": ["--pool", "prefork", "--concurrency", str(settings.ingest.concurrency)],
        "search": ["--pool", "threads", "--concurrency", str(settings.search.threads)],
        "maintenance": ["--pool", "threads", "--concurrency", "4", "--beat"],
    }[role]
    return [
        *(sys.executable, "-m", "celery", "--app", f"workers.{role}:app", "worker"),
        *("--hostname", f"{role}@%h", "--queues", ",".join(BY_ROLE[role])),
        *("--loglevel", settings.log.level, "--without-gossip", "--without-mingle"),
        "--without-heartbeat",
        *pool,
    ]
