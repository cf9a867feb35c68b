"""A private Callslip stack for a benchmark: `callslip up` in its own folder and on free ports."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import httpx

from callslip.config.keys import PREFIX
from callslip.config.load import load
from callslip.config.settings import BrokerSettings, ChromaSettings, Settings
from callslip.errors import StartError
from callslip.workers.supervision import runfile
from callslip.workers.supervision.runfile import RunFile

TUNED = tuple(
    f"{PREFIX}{section}__" for section in ("AGENT", "CHUNKING", "EMBEDDER", "INGEST", "SEARCH")
)
"""Prefixes of the variables that a benchmark uses; others could lead it to servers in use."""

START_SECONDS = 300.0
STOP_SECONDS = 60.0

_PROGRAM = """
import functools
from callslip.config.load import load
from callslip.workers.up import run
run(load(), functools.partial(print, flush=True), lambda url, first_time: None)
"""


@dataclass(frozen=True)
class PrivateStack:
    """A stack that is ready, with the settings of its processes."""

    run: RunFile
    settings: Settings


@contextmanager
def private_stack(
    lasting: Path | None = None,
    environ: Mapping[str, str] | None = None,
    python: str = sys.executable,
) -> Iterator[PrivateStack]:
    """Start a stack in the folder `lasting`, or in a temporary one; stop it at the end.

    A temporary folder is removed at the end. The stack asks for no key. Its settings are the
    defaults, the environment variables with a prefix in TUNED, and the variables `environ`. All
    processes run with the interpreter `python`. Raises StartError, with the stack's output, if the
    stack does not become ready.
    """
    with _folder(lasting) as folder, _ended_by_sigterm():
        data_dir = Path(folder).resolve()
        variables = {
            name: text
            for name, text in os.environ.items()
            if not name.startswith(PREFIX) or name.startswith(TUNED)
        }
        variables |= {f"{PREFIX}DATA_DIR": str(data_dir), f"{PREFIX}API__PORT": "0"}
        variables[f"{PREFIX}API__OPEN"] = "true"  # requests need no key
        variables |= environ or {}
        output = data_dir / "up.out"
        with output.open("wb") as file:
            process = subprocess.Popen(
                (python, "-c", _PROGRAM),
                env=variables,
                cwd=data_dir,  # this folder has no callslip.yaml
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
            )
        try:
            run = _wait(process, data_dir, output)
            placed = {
                "data_dir": data_dir,
                "broker": BrokerSettings(url=run.broker_url),
                "chroma": ChromaSettings.model_validate(run.chroma()),
            }
            yield PrivateStack(run, load(data_dir).settings.model_copy(update=placed))
        finally:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Let SIGTERM end the program as an exception, so that its stack is stopped too."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _folder(lasting: Path | None) -> AbstractContextManager[str]:
    if lasting is None:
        return tempfile.TemporaryDirectory(prefix="callslip-bench-")
    lasting.mkdir(parents=True, exist_ok=True)
    return nullcontext(str(lasting))


def _wait(process: "subprocess.Popen[bytes]", data_dir: Path, output: Path) -> RunFile:
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        if (run := runfile.read(data_dir)) and _is_ready(run.api_url):
            return run
        time.sleep(0.2)
    raise StartError(f"The benchmark's stack did not start. It printed:\n\n{output.read_text()}")


def _is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz", trust_env=False).status_code == httpx.codes.OK
    except httpx.TransportError:
        return False
