"""Serves a copy of a folder that another program's Chroma wrote, while a command runs.

A server on the folder itself would write to it: Chroma migrates what an older version made, and two
processes on one folder lose vectors.
"""

import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import NoReturn

from callslip.config.settings import MEGABYTE
from callslip.errors import DiskFull, InvalidRequest, StartError
from callslip.stores.chroma.server_files import DATABASE
from callslip.stores.disk import free_bytes
from callslip.workers.supervision import services
from callslip.workers.supervision.child import Part

LOCK_SECONDS = 10.0
"""How long a copy waits for a program that writes the database."""

STOP_SECONDS = 10.0

PORTS = 3
"""The number of ports that are tried."""

_PORT_IN_USE = "AddrInUse"

_TICK = 0.05

Served = tuple[str, str, Callable[[], None]]
"""The address, the secret tenant, and a function that waits until Ctrl-C or the server's end."""


@contextmanager
def served_copy(folder: Path, echo: Callable[[str], None]) -> Iterator[Served]:
    """Copy the folder and run Chroma's server on the copy, on loopback, until the block ends.

    The data of the default database are in a tenant whose name is secret, so no other user of the
    machine reads them. The copy is removed at the end. Raises InvalidRequest if it is no folder of
    Chroma's, DiskFull without room for a copy, StartError if the server does not start.
    """
    with TemporaryDirectory(prefix="callslip-chroma-") as made, _ending_on_sigterm():
        there = Path(made)
        _copy(folder, there / "chroma", echo)
        tenant = services.chroma_tenant()
        port, server = _start(there, tenant)
        try:
            yield f"http://{services.LOOPBACK}:{port}", tenant, lambda: _wait(server)
        finally:
            _stop(server)


def _copy(folder: Path, to: Path, echo: Callable[[str], None]) -> None:
    """Copy the database as SQLite reads it, and the files of the vector indexes."""
    database = folder / DATABASE
    if not database.is_file():
        raise InvalidRequest(
            f"{folder} is no folder of Chroma's: there is no file {DATABASE} in it",
            hint="Name the folder that the program gives to PersistentClient, or to --path of"
            " `chroma run`.",
        )
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    if size > free_bytes(to):
        raise DiskFull(
            f"a copy of {folder} needs {size // MEGABYTE + 1} MB, which {to.parent} has not",
            hint="Set TMPDIR to a folder with room.",
        )
    echo(f"Copying {size // MEGABYTE + 1} MB from {folder}")
    try:
        shutil.copytree(folder, to, ignore=shutil.ignore_patterns(f"{DATABASE}*"))
        address = f"{database.absolute().as_uri()}?mode=ro"
        with (
            closing(sqlite3.connect(address, timeout=LOCK_SECONDS, uri=True)) as source,
            closing(sqlite3.connect(to / DATABASE)) as target,
        ):
            source.backup(target)
    except (OSError, sqlite3.Error) as error:
        raise InvalidRequest(
            f"{folder} cannot be copied: {error}", hint="Stop the program that writes it, if any."
        ) from error


def _start(folder: Path, tenant: str) -> tuple[int, subprocess.Popen[bytes]]:
    """Start the server on a free port, and on another one if a program has taken that meanwhile."""
    end = ""
    for port in services.free_ports(PORTS):
        part = services.chroma(folder, port, tenant)
        with (folder / "log").open("wb") as log:
            server = subprocess.Popen(part.argv, stdout=log, stderr=log, env=part.env)
        try:
            if _becomes_ready(part, server, port, tenant):
                return port, server
            end = (folder / "log").read_text(errors="replace")[-1000:].strip()
        except BaseException:
            _stop(server)
            raise
        _stop(server)
        if _PORT_IN_USE not in end:
            break
    raise StartError(
        f"Chroma's server does not start on the copy: {end or 'it wrote no log'}",
        hint="The folder may be of a newer Chroma, or damaged.",
    )


def _becomes_ready(part: Part, server: subprocess.Popen[bytes], port: int, tenant: str) -> bool:
    """Wait until the server answers, and not another program's server on the port."""
    deadline = time.monotonic() + part.start_seconds
    while server.poll() is None and time.monotonic() < deadline:
        if part.ready(server.pid) and services.is_ok(port, f"/api/v2/tenants/{tenant}"):
            return True
        time.sleep(_TICK)
    return False


def _wait(server: subprocess.Popen[bytes]) -> None:
    try:
        server.wait()
    except KeyboardInterrupt:
        return
    raise StartError(f"Chroma's server ended with {server.returncode}.", hint="Start it again.")


def _stop(server: subprocess.Popen[bytes]) -> None:
    server.terminate()
    try:
        server.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


@contextmanager
def _ending_on_sigterm() -> Iterator[None]:
    """While the block runs, SIGTERM and SIGHUP are as Ctrl-C, so that the copy is removed."""

    def stop(_number: int, _frame: FrameType | None) -> NoReturn:
        raise KeyboardInterrupt

    numbers = (signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
