"""A temporary folder, and a temporary Chroma server if the settings name none."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from callslip.config.settings import ChromaSettings, Settings
from callslip.errors import StartError
from callslip.workers.supervision.services import free_ports

START_SECONDS = 60.0


@contextmanager
def placed(settings: Settings, kind: str) -> Iterator[Settings]:
    """Provide the settings with a temporary folder, and with a Chroma server if they name none."""
    with in_folder(settings) as within, served(within, kind) as complete:
        yield complete


@contextmanager
def in_folder(settings: Settings) -> Iterator[Settings]:
    """Provide the settings with a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="callslip-bench-") as folder:
        yield settings.model_copy(update={"data_dir": Path(folder)})


@contextmanager
def served(settings: Settings, kind: str) -> Iterator[Settings]:
    """Provide the settings with a Chroma server over their folder if they name none."""
    if kind != "chroma" or settings.chroma.url is not None:
        yield settings
        return
    (port,) = free_ports(1)
    program = str(Path(sys.executable).with_name("chroma"))
    command = [program, "run", "--path", str(settings.data_dir / "chroma"), "--port", str(port)]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdout=quiet, stderr=quiet) as server:
        try:
            url = f"http://127.0.0.1:{port}"
            _wait(url, server)
            yield settings.model_copy(update={"chroma": ChromaSettings(url=url)})
        finally:
            server.terminate()


def _wait(url: str, server: subprocess.Popen[bytes]) -> None:
    ends = time.monotonic() + START_SECONDS
    while time.monotonic() < ends and server.poll() is None:
        try:
            httpx.get(f"{url}/api/v2/heartbeat").raise_for_status()
            return
        except httpx.HTTPError:
            time.sleep(0.1)
    raise StartError("Chroma's server does not start.")
