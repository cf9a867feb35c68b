"""Builds the command line of each process of Callslip."""

import sys

from callslip.config.load import environment
from callslip.config.settings import ApiSettings, Settings
from callslip.errors import SettingsError
from callslip.tasks.queues import Role

ROLES: tuple[Role, ...] = ("ingest", "search", "answer", "maintenance", "api", "keyword")

KEYWORD_KEEP_ALIVE = 60
"""Seconds for which the service of the keyword index leaves an idle connection open."""

LONGEST_REQUEST_LINE = 65_534
"""The maximum in bytes. A question of 4,000 Korean characters takes 36,000 in a URL."""


FEW_ARENAS = {"MALLOC_ARENA_MAX": "2"}
"""Environment variables of every process of Callslip, unless it has others.

By default glibc has an arena for each thread and keeps the largest size that each ever had: reading
a collection's sample once in each of eight threads took 260 MB more, with two arenas 55 MB.
"""


def argv(role: Role, settings: Settings) -> list[str]:
    """The command line that starts a process of this role, for exec or a supervisor."""
    if role == "api":
        return serving("callslip.api.wsgi:app", settings.api, _threads(settings.api))
    if role == "keyword":
        own = keyword_service(settings).api
        return serving("callslip.api.keyword_wsgi:serve()", own, settings.keyword.threads)
    return [sys.executable, "-m", "callslip.workers.worker", role]


def keyword_service(settings: Settings) -> Settings:
    """The settings of the process that serves the keyword index, one process with the folder.

    The server of the API listens where `api.host` and `api.port` say. Raises SettingsError without
    a key.
    """
    if settings.keyword.key is None:
        raise SettingsError(
            "keyword.key is not set: the service and its clients share this secret.",
            hint="Set CALLSLIP_KEYWORD__KEY, or CALLSLIP_KEYWORD__KEY_FILE to a file with it.",
        )
    own = {
        "host": settings.keyword.host,
        "port": settings.keyword.port,
        "processes": 1,
        "open": False,
        "keep_alive_seconds": KEYWORD_KEEP_ALIVE,
    }
    return settings.model_copy(update={"api": settings.api.model_copy(update=own)})


def keyword_environment(settings: Settings) -> dict[str, str]:
    """The variables of the process with the settings that `keyword_service` changes."""
    api = keyword_service(settings).api
    names = ("host", "port", "processes", "open", "keep_alive_seconds")
    return environment({f"api.{name}": getattr(api, name) for name in names})


def serving(app: str, api: ApiSettings, threads: int) -> list[str]:
    """The command line that serves a WSGI app at the host and port of the settings."""
    return [
        *(sys.executable, "-m", "gunicorn", app),
        *("--bind", f"{api.host}:{api.port}"),
        *("--worker-class", "callslip.api.server.worker.Worker", "--workers", str(api.processes)),
        *("--worker-connections", str(api.connections), "--no-sendfile"),
        *("--keep-alive", str(api.keep_alive_seconds), "--forwarder-headers", ""),
        *("--threads", str(threads), "--timeout", "120"),
        *("--graceful-timeout", "5", "--log-level", "warning"),
        *("--no-control-socket", "--config", "python:callslip.api.gunicorn_config"),
        *("--limit-request-line", str(LONGEST_REQUEST_LINE)),
    ]


def _threads(api: ApiSettings) -> int:
    """The threads of one process: those for short requests, and those for streams and answers."""
    return api.threads + api.streams + api.answers
