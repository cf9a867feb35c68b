"""Weaviate for tests: the suite's own server in a process of its own, on free ports of loopback."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from callslip.config.settings import Settings, WeaviateSettings
from callslip.errors import StoreDown
from callslip.stores.registry import make_store
from callslip.stores.weaviate.connection import Connection
from callslip.workers.supervision import services

STARTUP_SECONDS = 60.0
STARTS = 3

REAL_SERVER = "CALLSLIP_TEST_WEAVIATE_URL"
"""Names a real server, which the suite runs against too; …_GRPC_URL names its gRPC interface."""

Ports = tuple[int, int]
"""Of HTTP and of gRPC."""


def weaviate_settings(ports: Ports, timeout_seconds: float = 60) -> Settings:
    """Settings of a store at this server."""
    http_url, grpc_url = (f"http://127.0.0.1:{port}" for port in ports)
    return Settings(
        weaviate=WeaviateSettings(url=http_url, grpc_url=grpc_url, timeout_seconds=timeout_seconds)
    )


@contextmanager
def weaviate_server(
    folder: Path, ports: Ports | None = None
) -> Iterator[tuple[Ports, "subprocess.Popen[bytes]"]]:
    """A server with its journal in the folder; its ports and its process."""
    ports, server = _started(folder, ports) if ports else _started_on_free_ports(folder)
    try:
        yield ports, server
    finally:
        server.kill()
        server.wait(30)


@contextmanager
def new_classes_dropped(settings: Settings) -> Iterator[None]:
    """Drop at the end the classes that the server did not have at the beginning."""
    server = settings.weaviate
    with closing(Connection(str(server.url), server.grpc_url, None, 60)) as connection:
        before = set(connection.client().collections.list_all(simple=True))
        yield
        made = connection.client().collections.list_all(simple=True).keys() - before
        connection.client().collections.delete(sorted(made))
        assert connection.client().collections.list_all(simple=True).keys() <= before


def _started_on_free_ports(folder: Path) -> tuple[Ports, "subprocess.Popen[bytes]"]:
    """Start again with other ports if another process took one before the server listened."""
    for _ in range(STARTS):
        http_port, grpc_port = services.free_ports(2)
        with suppress(StoreDown):
            return _started(folder, (http_port, grpc_port))
    raise StoreDown(f"Weaviate of the tests does not start: {(folder / 'log').read_text()[-2000:]}")


def _started(folder: Path, ports: Ports) -> tuple[Ports, "subprocess.Popen[bytes]"]:
    program = Path(__file__).with_name("weaviate_fake.py")
    command = [sys.executable, str(program), str(folder / "journal"), *map(str, ports)]
    with (folder / "log").open("ab") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        _wait_for(weaviate_settings(ports), server)
    except BaseException:
        server.kill()
        server.wait(30)
        raise
    return ports, server


def _wait_for(settings: Settings, server: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + STARTUP_SECONDS
    with closing(make_store(settings, "weaviate")) as made:
        while True:
            try:
                return made.ping()
            except StoreDown:
                if server.poll() is not None or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
