"""A real Chroma server for tests, on a free port of loopback."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from callslip.config.settings import ChromaSettings, Settings
from callslip.errors import StoreDown
from callslip.stores.registry import make_store

STARTUP_SECONDS = 60.0


def free_port() -> int:
    """A port of loopback that nothing listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def chroma_settings(url: str, folder: Path) -> Settings:
    """Settings of a store at this server with its keyword index in the folder."""
    return Settings(data_dir=folder, chroma=ChromaSettings(url=url))


@contextmanager
def chroma_server(folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A Chroma server on a free port of loopback, its data in the folder."""
    port = free_port()
    command = [str(Path(sys.executable).with_name("chroma")), "run", "--host", "127.0.0.1"]
    command += ["--port", str(port), "--path", str(folder / "data")]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log)
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_for(chroma_settings(url, folder), server)
        yield url, server
    finally:
        server.terminate()
        server.wait(30)


def _wait_for(settings: Settings, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + STARTUP_SECONDS
    with closing(make_store(settings, "chroma")) as made:
        while True:
            try:
                return made.ping()
            except StoreDown:
                if server.poll() is not None or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
