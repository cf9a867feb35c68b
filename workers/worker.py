"""`python -m callslip.workers.worker ROLE`: runs the Celery worker of a role.

Celery's command line imports all its commands and a library for prompts, which takes .4 s more.
"""

import importlib
import socket
import sys
from typing import Any, cast

from celery import Celery

from callslip.config import Settings, get_settings
from callslip.tasks.queues import BY_ROLE, Role

MAINTENANCE_THREADS = 4


def options_of(role: Role, settings: Settings) -> dict[str, Any]:
    """The options of Celery's worker that differ between the roles."""
    return {
        "ingest": {"pool": "prefork", "concurrency": settings.ingest.concurrency},
        "search": {"pool": "threads", "concurrency": settings.search.threads},
        "answer": {"pool": "threads", "concurrency": settings.agent.threads},
        "maintenance": {"pool": "threads", "concurrency": MAINTENANCE_THREADS, "beat": True},
    }[role]


def main(role: Role) -> int | None:
    """Run the worker until it stops; return its exit code, None if it was terminated."""
    settings = get_settings()
    app = cast(Celery, importlib.import_module(f"callslip.workers.{role}").app)
    worker = app.Worker(
        hostname=f"{role}@{socket.gethostname()}",
        queues=BY_ROLE[role],
        loglevel=settings.log.level,
        quiet=True,
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
        **options_of(role, settings),
    )
    worker.start()
    return cast(int | None, worker.exitcode)


if __name__ == "__main__":
    try:
        sys.exit(main(cast(Role, sys.argv[1])))
    except KeyboardInterrupt:  # before Celery handles Ctrl-C, as while models are loaded
        sys.exit("Aborted")
