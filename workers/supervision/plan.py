"""Plans which parts `callslip up` runs, in which order and with which settings."""

import functools
import json
import os
import re
import secrets
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import SecretStr

from callslip.config.keys import values
from callslip.config.load import environment, is_of_settings
from callslip.config.settings import ApiSettings, Settings
from callslip.models.e5.runtimes.background import BACKGROUND
from callslip.stores.registry import kinds
from callslip.tasks.queues import BY_ROLE, PRESENCE, Role
from callslip.workers.commands import FEW_ARENAS, argv
from callslip.workers.supervision import forking, services
from callslip.workers.supervision.child import Part
from callslip.workers.supervision.runfile import MARK

if TYPE_CHECKING:
    import redis

GUARD, MODEL, FORK_SERVER = "guard", "model", "forkserver"

WORKERS: tuple[Role, ...] = ("search", "ingest", "maintenance", "answer")
"""The workers in the order of their start.

The search worker loads its models before it is ready, so it is the first. The answer worker loads
its models once it is ready: if it was not the last, it would take a core from the others.
"""

WORKER_PATIENCE = 6.0
"""Seconds without the keys of `workers.presence`, which last six seconds themselves."""

API_PATIENCE = 60.0
"""Seconds without an answer of /healthz: long uploads may occupy every thread of the server."""

_SQLITE = re.compile(r"(sqlite(?:\+\w+)?:///)([^/:?][^?]*)")
"""The URL of a ledger in a file by a relative path."""

CLIENTS = {"chroma": "callslip.stores.chroma.store", "weaviate": "callslip.stores.weaviate.store"}
"""The modules of the stores whose clients take long to import."""

BACKGROUND_NICENESS = 10
"""From this `ingest.niceness` on, the embedder of the ingest worker computes in the background."""

ANY_ADDRESS = ("0.0.0.0", "::", "")  # noqa: S104


def plan(settings: Settings, data_dir: Path) -> tuple[Settings, list[Part]]:
    """Return the settings, with the URLs of the servers that `up` starts, and the parts to run."""
    broker, chroma, server = services.free_ports(3)
    host = services.LOOPBACK
    placed: dict[str, object] = {
        "data_dir": data_dir,
        "api": settings.api.model_copy(update={"port": settings.api.port or server}),
    }
    servers = []
    if settings.broker.url is None:
        password, level = secrets.token_hex(32), settings.log.level_of("valkey")
        servers.append(services.valkey(data_dir, broker, password, (GUARD,), level))
        url = f"redis://:{password}@{host}:{broker}/0"
        placed["broker"] = settings.broker.model_copy(update={"url": url})
    if settings.chroma.url is None and _needs_chroma(settings, data_dir):
        tenant, level = services.chroma_tenant(), settings.log.level_of("chroma")
        servers.append(services.chroma(data_dir, chroma, tenant, (GUARD,), level))
        update = {"url": f"http://{host}:{chroma}", "tenant": SecretStr(tenant)}
        placed["chroma"] = settings.chroma.model_copy(update=update)
    settings = settings.model_copy(update=placed)
    forks = forking.Forks() if forking.is_supported() else None
    loader = _fork_server(settings, forks) if forks else _model(settings)
    after = (GUARD, loader.name, *(server.name for server in servers))
    marked = (
        replace(part, env={**part.env, MARK: str(data_dir)})
        for part in (loader, *servers, *_programs(settings, after, forks))
    )
    return settings, [_alone(part, data_dir) for part in (_guard(data_dir), *marked)]


def _alone(part: Part, data_dir: Path) -> Part:
    """The part in an empty folder, where no `random.py` or `.env` of a user changes it."""
    folder = data_dir / "cwd"
    folder.mkdir(mode=0o700, exist_ok=True)
    return replace(part, cwd=folder, env={**part.env, "PYTHONSAFEPATH": "1"})


def _needs_chroma(settings: Settings, data_dir: Path) -> bool:
    """Whether new collections are stored in Chroma, or existing ones may be."""
    return settings.store == "chroma" or (data_dir / "chroma").exists()


def _guard(data_dir: Path) -> Part:
    command = (
        sys.executable,
        "-m",
        "callslip.workers.supervision.guard",
        str(data_dir),
        str(os.getpid()),
    )
    return Part(GUARD, command, os.environ)


def _model(settings: Settings) -> Part:
    """The part that prepares the model once, in a separate process, whose end frees its memory."""
    command = (sys.executable, "-m", "callslip.models.e5.prepare", str(settings.models_dir))
    return Part(MODEL, command, os.environ, after=(GUARD,), once=True, start_seconds=600.0)


def _fork_server(settings: Settings, forks: forking.Forks) -> Part:
    """The part that loads once what the programs share; it prepares the model first."""
    clients = (CLIENTS[kind] for kind in kinds(settings) if kind in CLIENTS)
    return Part(
        FORK_SERVER,
        (
            *(sys.executable, "-m", "callslip.workers.fork_server"),
            *(str(settings.models_dir), *clients),
        ),
        _inherited(),
        ready=lambda pid: forks.is_ready(),
        works=lambda pid: forks.is_open(),
        after=(GUARD,),
        stdin=forks.connect,
        start_seconds=600.0,
    )


def _inherited() -> dict[str, str]:
    """The environment of this process without the settings, which each program gets itself."""
    inherited = {name: text for name, text in os.environ.items() if not is_of_settings(name)}
    return {**FEW_ARENAS, **inherited, **services.NO_TELEMETRY}


def _programs(settings: Settings, after: Sequence[str], forks: forking.Forks | None) -> list[Part]:
    """The API and the workers. Their environment has exactly these settings, from any source.

    Only `log.file` is different: each has a log of its own.
    """
    stated = {key: _absolute(key, value) for key, value in values(settings).items()}
    env = _inherited() | environment(stated)
    logs = settings.data_dir / "logs"

    def env_of(role: Role) -> dict[str, str]:
        waits = role == "ingest" and settings.ingest.niceness >= BACKGROUND_NICENESS
        own = {BACKGROUND: "1"} if waits else {}
        return env | own | environment({"log.file": logs / f"{role}.log"})

    niceness: dict[Role, int] = {
        "ingest": settings.ingest.niceness,
        "answer": settings.agent.niceness,
    }
    broker = functools.cache(functools.partial(_connect, settings))
    return [
        *(
            Part(
                role,
                argv(role, settings),
                env_of(role),
                lambda pid, role=role: bool(_reads_its_queues(broker, BY_ROLE[role], pid)),  # type: ignore[misc]
                works=functools.partial(_reads_its_queues, broker, BY_ROLE[role]),
                patience=WORKER_PATIENCE,
                after=after,
                niceness=niceness.get(role, 0),
                forks=forks,
                reopens_log=True,
            )
            for role in WORKERS
        ),
        Part(
            "api",
            argv("api", settings),
            env_of("api"),
            ready=lambda pid: _lacks(settings.api) == "",
            lacks=lambda: _lacks(settings.api, services.PROGRESS_SECONDS),
            works=lambda pid: services.is_ok(
                settings.api.port,
                "/healthz",
                _host(settings.api),
                seconds=services.PROGRESS_SECONDS,
            ),
            patience=API_PATIENCE,
            after=after,
            ready_after=WORKERS,
            forks=forks,
            early=True,
            reopens_log=True,
        ),
    ]


def _absolute(key: str, value: object) -> object:
    """The value, with paths that do not depend on the folder in which a process runs."""
    if isinstance(value, Path):
        return value.absolute()
    if key in ("blobs.url", "backup.to") and isinstance(value, str) and "://" not in value:
        return str(Path(value).absolute())
    if key == "ledger.url" and isinstance(value, str) and (path := _SQLITE.fullmatch(value)):
        return path[1] + str(Path(path[2]).absolute())
    if key == "annotator.documents" and isinstance(value, str):
        return ",".join(_document(text.strip()) for text in value.split(","))
    return value


def _document(path_or_link: str) -> str:
    is_path = path_or_link and "://" not in path_or_link
    return str(Path(path_or_link).absolute()) if is_path else path_or_link


def _connect(settings: Settings) -> "redis.Redis":
    """A client of the broker, whose import the start of the fork server need not wait for."""
    from callslip.tasks.shared.broker import connect

    return connect(settings, services.PROBE_SECONDS)


def _reads_its_queues(
    broker: "Callable[[], redis.Redis]", queues: Sequence[str], pid: int
) -> bool | None:
    """Whether a worker announces all its queues; None if the broker does not answer."""
    import redis

    me = f"{socket.gethostname()}:{pid}"
    try:
        return broker().exists(*(f"{PRESENCE}:{queue}:{me}" for queue in queues)) == len(queues)
    except redis.RedisError:
        return None


def _host(api: ApiSettings) -> str:
    return services.LOOPBACK if api.host in ANY_ADDRESS else api.host


def _lacks(api: ApiSettings, seconds: float = services.PROBE_SECONDS) -> str:
    """The reason why the server is not ready, from /readyz; empty if the server is ready."""
    answer = services.get(api.port, "/readyz", _host(api), seconds)
    if answer is None:
        return "no answer from /readyz"
    status, body = answer
    if status == HTTPStatus.OK:
        return ""
    if status != HTTPStatus.SERVICE_UNAVAILABLE:
        return f"/readyz answers {status}"
    parts = json.loads(body)["parts"]
    return "; ".join(f"{name}: {part['reason']}" for name, part in parts.items() if part["reason"])
