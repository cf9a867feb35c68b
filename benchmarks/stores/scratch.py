"""A temporary folder, and a temporary Chroma server if the settings name none."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx

from callslip.config.settings import ChromaSettings, Settings
from callslip.errors import StartError
from callslip.workers.supervision.services import free_ports

START_SECONDS = 60.0


@contextmanager
def placed(settings: Settings, kind: str) -> Iterator[Settings]:
    """Provide the settings with a temporary folder, and with a Chroma server if they name none."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="callslip-bench-")))
        settings = settings.model_copy(update={"data_dir": folder})
        if kind == "chroma" and settings.chroma.url is None:
            (port,) = free_ports(1)
            program = str(Path(sys.executable).with_name("chroma"))
            command = [program, "run", "--path", str(folder / "chroma"), "--port", str(port)]
            server = stack.enter_context(
                subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            )
            stack.callback(server.terminate)
            url = f"http://127.0.0.1:{port}"
            _wait(url, server)
            settings = settings.model_copy(update={"chroma": ChromaSettings(url=url)})
        yield settings


def _wait(url: str, server: subprocess.Popen[bytes]) -> None:
    ends = time.monotonic() + START_SECONDS
    while time.monotonic() < ends and server.poll() is None:
        try:
            httpx.get(f"{url}/api/v2/heartbeat").raise_for_status()
            return
        except httpx.HTTPError:
            time.sleep(0.1)
    raise StartError("Chroma's server does not start.")
