"""`callslip doctor`: checks every part; prints the errors and advice."""

import os
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from callslip.cli.shared.output import as_json, emit, reporting
from callslip.cli.shared.server import client_of, explaining_key, running_url, url_option
from callslip.config import Loaded, Settings, load, masked
from callslip.errors import CallslipError
from callslip.workers.local_access import local_key

if TYPE_CHECKING:
    from callslip.models.embedders.contract import Embedder

LEAST_FREE_BYTES = 1_000_000_000

NOT_OURS = ("store weaviate", "store crate")
"""Servers that `callslip up` does not run."""

LOADING_SECONDS = 60.0
"""The most time for a reranker to load and to score a first passage."""


SIGNS = {
    (True, False): ("ok  ", "green"),
    (True, True): ("warn", "yellow"),
    (False, False): ("FAIL", "red"),
}
"""The sign and colour of a finding, by whether the part works and whether it warns."""


@click.command(name="doctor")
@url_option
@as_json
@reporting
def doctor_command(url: str | None, json_out: bool) -> None:
    """Check every part of the installation and advise what to do. Exit code 1 on an error.

    A risk, such as a server that asks for no key, is a warning.

    \b
    Example:  callslip doctor
    """
    loaded = load()
    findings = examine(loaded, url or running_url(loaded.settings))
    if json_out:
        emit([finding.__dict__ for finding in findings])
    else:
        for finding in findings:
            sign, colour = SIGNS[finding.ok, finding.warns]
            click.echo(f"{click.style(sign, fg=colour)} {finding.part}: {finding.detail}")
            if not finding.ok or finding.warns:
                click.echo(f"     {finding.advice}")
    sys.exit(0 if all(finding.ok for finding in findings) else 1)


@dataclass(frozen=True)
class Finding:
    """The result of checking one part."""

    part: str
    ok: bool
    detail: str
    advice: str = ""
    warns: bool = False
    """The part works, but may be configured by mistake."""


def examine(loaded: Loaded, url: str) -> list[Finding]:
    """Check this machine, the models and the server, and through the server all other parts."""
    settings = loaded.settings
    findings = [_python(), _data_dir(settings), *_models(settings)]
    if settings.keyword.url is not None:
        findings.append(_try("keyword service", lambda: _keyword_service(settings)))
    if settings.layout.base_url is not None:
        findings.append(_try("layout server", lambda: _layout_server(settings)))
    findings.append(_try("server", lambda: _server(url)))
    if findings[-1].ok:
        findings += [_try("api.key", lambda: _key(loaded, url)), *_parts(url)]
    if settings.api.open:
        findings.append(_open_server())
    if settings.broker.url is not None:
        findings.append(_try("broker settings", lambda: _broker(settings)))
    return findings


def _try(part: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding(part, True, look())
    except CallslipError as error:
        return Finding(part, False, error.detail, error.advice)


def _python() -> Finding:
    running = ".".join(map(str, sys.version_info[:3]))
    return Finding("python", sys.version_info >= (3, 11), running, "Callslip needs 3.11 or newer.")


def _data_dir(settings: Settings) -> Finding:
    folder = settings.data_dir.absolute()
    nearest = next(p for p in (folder, *folder.parents) if p.exists())
    if not os.access(nearest, os.W_OK):
        return Finding("data_dir", False, f"{folder} cannot be written", "Set CALLSLIP_DATA_DIR.")
    free = shutil.disk_usage(nearest).free
    if free >= LEAST_FREE_BYTES and not folder.exists():
        advice = "Run this where `callslip up` runs, or set CALLSLIP_DATA_DIR to its data folder."
        return Finding("data_dir", True, f"{folder} does not exist yet", advice, warns=True)
    return Finding(
        "data_dir",
        free >= LEAST_FREE_BYTES,
        f"{folder}, {free / 1e9:.1f} GB free",
        "Make room, or set CALLSLIP_DATA_DIR to a larger disk.",
    )


def _models(settings: Settings) -> list[Finding]:
    """Check the models; without a data folder their files are built in a temporary one."""
    if not settings.data_dir.exists():
        with TemporaryDirectory() as folder:
            return _models(settings.model_copy(update={"data_dir": Path(folder)}))
    findings = [_try("embedder", lambda: _embedder(settings))]
    findings += [
        _try(f"embedders.{name}", partial(_further_embedder, settings, name))
        for name in settings.embedders
    ]
    if settings.rerank.provider != "none":
        findings.append(_try("reranker", lambda: _reranker(settings)))
    return findings


def _embedder(settings: Settings) -> str:
    from callslip.models.registry import make_embedder

    return _tried(make_embedder(settings))


def _further_embedder(settings: Settings, name: str) -> str:
    from callslip.models.registry import make_embedder, make_further_embedders

    return _tried(make_further_embedders(settings, make_embedder(settings))[name])


def _tried(embedder: "Embedder") -> str:
    vector = embedder.query("callslip")
    runtime = getattr(embedder, "runtime", None)  # of the local model alone
    return f"{embedder.model}, {len(vector)} dimensions" + (f", by {runtime}" if runtime else "")


def _reranker(settings: Settings) -> str:
    """Score a passage: searches continue without a failed reranker, so they do not fail."""
    from callslip.models.registry import make_embedder, make_reranker

    reranker = make_reranker(settings, make_embedder(settings))
    if reranker is None:
        return "none"
    began = time.monotonic()
    reranker.scores("callslip", ["A slip that a reader fills in."], LOADING_SECONDS)
    return f"{reranker.name}, {time.monotonic() - began:.1f} s with loading"


def _layout_server(settings: Settings) -> str:
    from callslip.ingestion.layout_server import LayoutServer

    with closing(LayoutServer(settings.layout)) as server:
        return server.ping()


def _keyword_service(settings: Settings) -> str:
    from callslip.stores.fulltext.service import KeywordService

    with closing(KeywordService(settings.keyword)) as service:
        service.ping()
    return f"{settings.keyword.url}, takes keyword.key"


def _server(url: str) -> str:
    with client_of(url, timeout=10) as client:
        return f"{url}, version {client.healthz().version}"


def _key(loaded: Loaded, url: str) -> str:
    key = local_key(loaded.settings, url)
    with explaining_key(loaded, url), client_of(url, key, timeout=10) as client:
        client.request_json("GET", "/openapi.json")  # requires the key and no other part
    return "unset" if key is None else "the server takes it"


def _open_server() -> Finding:
    return Finding(
        "api.open",
        True,
        "the server asks for no key: every program on this machine may do everything",
        "Start `callslip up` without --open, and unset api.open.",
        warns=True,
    )


def _parts(url: str) -> list[Finding]:
    with client_of(url, timeout=30) as client:
        parts = client.readyz().parts
    return [
        Finding(
            name,
            part.ready,
            part.reason or "ready",
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


def _broker(settings: Settings) -> str:
    """An eviction policy or a missing append-only file loses queued work silently."""
    import redis  # a third of a second, which other commands save

    from callslip.tasks.shared.broker import connect

    url = str(settings.broker.url)
    try:
        client = connect(settings)
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
