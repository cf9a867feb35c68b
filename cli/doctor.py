"""`callslip doctor`: every part, what is wrong with it and what to do."""

import os
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import redis

from callslip.errors import CallslipError
from cli.client import Client
from config import Settings, masked
from config.settings import LOOPBACK

LEAST_FREE_BYTES = 1_000_000_000

NOT_OURS = ("store weaviate", "store crate")
"""Servers that `callslip up` does not run."""

LOADING_SECONDS = 60.0
"""For a reranker to load and read a first passage."""


@dataclass(frozen=True)
class Finding:
    """One part, looked at."""

    part: str
    ok: bool
    detail: str
    advice: str = ""
    warns: bool = False
    """It works, and may still not be what was meant."""


def examine(settings: Settings, url: str) -> list[Finding]:
    """Look at this machine, the models, the desk, and through the desk at all the rest."""
    findings = [_python(), _data_dir(settings), _try("embedder", lambda: _embedder(settings))]
    if settings.rerank.provider != "none":
        findings.append(_try("reranker", lambda: _reranker(settings)))
    findings.append(_try("desk", lambda: _desk(url)))
    if findings[-1].ok:
        findings += [_try("api.key", lambda: _key(settings, url)), *_parts(url)]
    if settings.api.key is None and settings.api.host not in LOOPBACK:
        findings.append(_open_desk(settings))
    if settings.broker.url is not None:
        findings.append(_try("broker settings", lambda: _broker(settings.broker.url or "")))
    return findings


def _try(part: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding(part, True, look())
    except CallslipError as error:
        return Finding(part, False, error.detail, error.advice)


def _python() -> Finding:
    found = ".".join(map(str, sys.version_info[:3]))
    return Finding("python", sys.version_info >= (3, 11), found, "Callslip needs 3.11 or newer.")


def _data_dir(settings: Settings) -> Finding:
    folder = settings.data_dir.absolute()
    nearest = next(p for p in (folder, *folder.parents) if p.exists())
    if not os.access(nearest, os.W_OK):
        return Finding("data_dir", False, f"{folder} cannot be written", "Set CALLSLIP_DATA_DIR.")
    free = shutil.disk_usage(nearest).free
    return Finding(
        "data_dir",
        free >= LEAST_FREE_BYTES,
        f"{folder}, {free / 1e9:.1f} GB free",
        "Make room, or set CALLSLIP_DATA_DIR to a larger disk.",
    )


def _embedder(settings: Settings) -> str:
    from models.registry import make_embedder

    embedder = make_embedder(settings)
    vector = embedder.query("callslip")
    return f"{embedder.model}, {len(vector)} dimensions"


def _reranker(settings: Settings) -> str:
    """A search goes on without one that fails, and so does not show it but in its answer."""
    from models.registry import make_embedder, make_reranker

    reranker = make_reranker(settings, make_embedder(settings))
    if reranker is None:
        return "none"
    began = time.monotonic()
    reranker.scores("callslip", ["A slip that a reader fills in."], LOADING_SECONDS)
    return f"{reranker.name}, {time.monotonic() - began:.1f} s with loading"


def _desk(url: str) -> str:
    with Client(url, timeout=10) as client:
        return f"{url}, version {client.get('/healthz')['version']}"


def _key(settings: Settings, url: str) -> str:
    with Client(url, timeout=10, key=settings.api.key) as client:
        client.get("/openapi.json")  # what is not open and asks no other part
    return "unset" if settings.api.key is None else "the desk takes it"


def _open_desk(settings: Settings) -> Finding:
    return Finding(
        "api.host",
        True,
        f"the desk listens on {settings.api.host} and asks for no key",
        "Set api.key, unless something in front of the desk asks who it is.",
        warns=True,
    )


def _parts(url: str) -> list[Finding]:
    with Client(url, timeout=30) as client:
        parts = client.readiness()["parts"]
    return [
        Finding(
            name,
            part["ready"],
            part["reason"] or "ready",
            _advice(name),
        )
        for name, part in parts.items()
    ]


def _advice(part: str) -> str:
    if part.startswith("queue "):
        return "Start the missing worker (`callslip run ROLE`), or everything with `callslip up`."
    if part in NOT_OURS:
        kind = part.removeprefix("store ")
        return (
            f"Callslip does not run this server: start it, or correct CALLSLIP_{kind.upper()}__URL."
        )
    return "See the log of that part (`logs` in data_dir) and start it again."


def _broker(url: str) -> str:
    """An eviction policy or a missing append-only file loses queued work silently."""
    try:
        client = redis.Redis.from_url(url, socket_connect_timeout=2, socket_timeout=5)
        policy = client.config_get("maxmemory-policy").get("maxmemory-policy")
        append = client.config_get("appendonly").get("appendonly")
    except redis.RedisError as error:
        raise CallslipError(f"{masked(url)}: {type(error).__name__}", hint="Start it.") from error
    if policy != "noeviction" or append != "yes":
        raise CallslipError(
            f"{masked(url)}: maxmemory-policy {policy}, appendonly {append}",
            hint="Set maxmemory-policy noeviction and appendonly yes: queued work must not vanish.",
        )
    return f"{masked(url)}, noeviction, append-only"
