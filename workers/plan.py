"""Plans which parts `callslip up` runs, in which order and with which settings."""

import functools
import json
import os
import socket
import sys
from collections.abc import Sequence
from http import HTTPStatus
from pathlib import Path

import redis

from callslip.config.keys import KEYS
from callslip.config.load import environment
from callslip.config.settings import ApiSettings, Settings
from callslip.tasks.queues import BY_ROLE, PRESENCE, Role
from callslip.workers import services
from callslip.workers.child import Part
from callslip.workers.commands import argv

GUARD, MODEL = "guard", "model"

WORKERS: tuple[Role, ...] = ("ingest", "search", "answer", "maintenance")

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
        servers.append(services.valkey(data_dir, broker, after=(GUARD,)))
        url = f"redis://{host}:{broker}/0"
        placed["broker"] = settings.broker.model_copy(update={"url": url})
    if settings.chroma.url is None and _needs_chroma(settings, data_dir):
        servers.append(services.chroma(data_dir, chroma, after=(GUARD,)))
        url = f"http://{host}:{chroma}"
        placed["chroma"] = settings.chroma.model_copy(update={"url": url})
    settings = settings.model_copy(update=placed)
    return settings, [
        _guard(data_dir),
        _model(settings),
        *servers,
        *_programs(settings, after=(GUARD, MODEL, *(server.name for server in servers))),
    ]


def _needs_chroma(settings: Settings, data_dir: Path) -> bool:
    """Whether new collections are stored in Chroma, or existing ones may be."""
    return settings.store == "chroma" or (data_dir / "chroma").exists()


def _guard(data_dir: Path) -> Part:
    command = (sys.executable, "-m", "callslip.workers.guard", str(data_dir), str(os.getpid()))
    return Part(GUARD, command, os.environ, stop_seconds=1.0)


def _model(settings: Settings) -> Part:
    """The part that prepares the model once, in a separate process, whose end frees its memory."""
    program = (
        "import sys, pathlib; from callslip.models.e5.prepare import prepare;"
        " prepare(pathlib.Path(sys.argv[1]))"
    )
    command = (sys.executable, "-c", program, str(settings.models_dir))
    return Part(MODEL, command, os.environ, after=(GUARD,), once=True, start_seconds=600.0)


def _programs(settings: Settings, after: Sequence[str]) -> list[Part]:
    """The API and the workers. Their environment has exactly these settings, from any source."""
    values = {key: functools.reduce(getattr, key.split("."), settings) for key in KEYS}
    env = {**os.environ, **services.NO_TELEMETRY, **environment(values)}
    niceness: dict[Role, int] = {
        "ingest": settings.ingest.niceness,
        "answer": settings.agent.niceness,
    }
    broker = redis.Redis.from_url(
        str(settings.broker.url),
        socket_connect_timeout=services.PROBE_SECONDS,
        socket_timeout=services.PROBE_SECONDS,
    )
    return [
        *(
            Part(
                role,
                (*_nice(niceness.get(role, 0)), *argv(role, settings)),
                env,
                functools.partial(_reads_its_queues, broker, BY_ROLE[role]),
                after=after,
            )
            for role in WORKERS
        ),
        Part(
            "api",
            argv("api", settings),
            env,
            ready=lambda pid: _lacks(settings.api) == "",
            lacks=lambda: _lacks(settings.api),
            after=after,
        ),
    ]


def _nice(niceness: int) -> tuple[str, ...]:
    return ("nice", "-n", str(niceness)) if niceness else ()


def _reads_its_queues(broker: redis.Redis, queues: Sequence[str], pid: int) -> bool:
    me = f"{socket.gethostname()}:{pid}"
    try:
        return broker.exists(*(f"{PRESENCE}:{queue}:{me}" for queue in queues)) == len(queues)
    except redis.RedisError:
        return False


def _lacks(api: ApiSettings) -> str:
    """The reason why the server is not ready, from /readyz; empty if the server is ready."""
    host = services.LOOPBACK if api.host in ANY_ADDRESS else api.host
    answer = services.get(api.port, "/readyz", host)
    if answer is None:
        return "no answer from /readyz"
    status, body = answer
    if status == HTTPStatus.OK:
        return ""
    if status != HTTPStatus.SERVICE_UNAVAILABLE:
        return f"/readyz answers {status}"
    parts = json.loads(body)["parts"]
    return "; ".join(f"{name}: {part['reason']}" for name, part in parts.items() if part["reason"])
