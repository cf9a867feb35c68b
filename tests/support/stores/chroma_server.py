"""A real Chroma server for tests, on a free port of loopback."""

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import SecretStr

from callslip.config.settings import ChromaSettings, Settings
from callslip.workers.supervision import services
from callslip.workers.supervision.child import Part

STARTUP_SECONDS = 60.0
STARTS = 3

TENANT = services.chroma_tenant()
"""The secret of all servers of a run of tests."""


def free_port() -> int:
    """A port of loopback that nothing listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def chroma_settings(url: str, folder: Path) -> Settings:
    """Settings of a store at this server with its keyword index in the folder."""
    return Settings(data_dir=folder, chroma=ChromaSettings(url=url, tenant=SecretStr(TENANT)))


@contextmanager
def chroma_server(folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The server of `callslip up` on a free port of loopback, its data in `chroma` there."""
    url, server = _started(folder)
    try:
        yield url, server
    finally:
        server.terminate()
        server.wait(30)


def _started(folder: Path) -> tuple[str, subprocess.Popen[bytes]]:
    """Start again on another port if another process took the port before Chroma listened."""
    for _ in range(STARTS):
        port = free_port()
        part = services.chroma(folder, port, TENANT)
        with (folder / "log").open("ab") as log:
            server = subprocess.Popen(part.argv, stdout=log, stderr=log, env=part.env)
        if _listens(part, server):
            return f"http://127.0.0.1:{port}", server
    raise RuntimeError(f"Chroma does not start: {(folder / 'log').read_text()[-2000:]}")


def _listens(part: Part, server: subprocess.Popen[bytes]) -> bool:
    """Whether the server gets ready; one that has ended or is late does not run afterwards."""
    deadline = time.monotonic() + STARTUP_SECONDS
    while server.poll() is None and time.monotonic() < deadline:
        if part.ready(server.pid):
            return True
        time.sleep(0.05)
    server.kill()
    server.wait(30)
    return False
