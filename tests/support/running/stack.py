"""A whole private Callslip for tests: `callslip up` in a folder and on ports of its own."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import ClassVar
from unittest.mock import patch

import psutil
import pytest
from processes import is_gone, waits_until

from callslip.config.load import load
from callslip.config.settings import Settings
from callslip.workers.supervision import runfile
from callslip.workers.supervision.runfile import RunFile

MakeStack = Callable[[Mapping[str, str]], "Stack"]
"""Makes a stack with these environment variables, not started yet."""

WITHOUT_MODEL = {"CALLSLIP_EMBEDDER__KIND": "none"}
"""For what has nothing to do with vectors: a stack is there in half the time."""

START_SECONDS = 180.0
MEMORY_BYTES = 6 << 30
"""What a stack and the tests that use it may need; a start waits MEMORY_SECONDS for it."""

MEMORY_SECONDS = 240.0
STOP_SECONDS = 60.0
TAIL_LINES = 20


def new_home(tmp_path_factory: pytest.TempPathFactory, models_dir: Path) -> Path:
    """A data folder that shares the prepared model."""
    home = tmp_path_factory.mktemp("callslip")
    (home / "models").symlink_to(models_dir)
    return home


class Stack:
    """One `callslip up`; stopped, it can be started again on the same data."""

    starting: ClassVar[AbstractContextManager[object]] = nullcontext()
    """Held while a stack starts: several at once on two cores would each wait for all others."""

    def __init__(
        self,
        data_dir: Path,
        overrides: Mapping[str, str] | None = None,
        *,
        callslip: Path | None = None,
        cwd: Path | None = None,
    ) -> None:
        """`callslip` is the program, by default this environment's; it starts in `cwd`."""
        self.data_dir = data_dir
        self.callslip = callslip or Path(sys.executable).with_name("callslip")
        self.cwd = cwd or data_dir  # where no callslip.yaml is
        self.environ = {k: v for k, v in os.environ.items() if not k.startswith("CALLSLIP_")}
        self.environ |= {"CALLSLIP_DATA_DIR": str(data_dir), "CALLSLIP_API__PORT": "0"}
        # Tests send many documents before the pace is known.
        self.environ |= {"CALLSLIP_INGEST__MAX_BACKLOG_MINUTES": "1000"}
        # The shared stack has two processes, the reader and this niceness, as by default: an ingest
        # worker that yields to other work would wait for minutes beside the other tests.
        self.environ |= {"CALLSLIP_API__PROCESSES": "1", "CALLSLIP_AGENT__READER": "false"}
        self.environ |= {"CALLSLIP_INGEST__NICENESS": "0"}
        if "CALLSLIP_API__KEY" not in (overrides or {}):
            self.environ["CALLSLIP_API__OPEN"] = "true"  # tests of keys unset it
        self.environ |= overrides or {}
        self.output = data_dir / "up.out"
        self._process: subprocess.Popen[bytes] | None = None
        self._signalled: dict[str, tuple[int, float]] = {}

    @property
    def process(self) -> "subprocess.Popen[bytes]":
        """The supervisor."""
        assert self._process, "the stack was not started"
        return self._process

    @property
    def running(self) -> RunFile:
        """What the run file says."""
        found = runfile.read(self.data_dir)
        assert found, f"nothing runs in {self.data_dir}"
        return found

    @property
    def url(self) -> str:
        """Of the API."""
        return self.running.api_url

    @property
    def broker_url(self) -> str:
        """Of Valkey."""
        return self.running.broker_url

    @property
    def chroma_url(self) -> str:
        """Of Chroma's server."""
        assert self.running.chroma_url is not None
        return self.running.chroma_url

    @property
    def settings(self) -> Settings:
        """What its processes have in force, with the addresses of this start."""
        scopes = {
            "CALLSLIP_API__PORT": self.url.rpartition(":")[2],
            "CALLSLIP_BROKER__URL": self.broker_url,
            "CALLSLIP_CHROMA__URL": self.chroma_url,
            "CALLSLIP_CHROMA__TENANT": self.running.chroma_tenant or "",
        }
        with patch.dict(os.environ, self.environ | scopes, clear=True):
            return load(self.data_dir).settings

    def start(self) -> "Stack":
        """Return once everything is ready; fails with the ends of the logs."""
        with self.starting:
            waits_until(_has_memory, MEMORY_SECONDS)
            self.launch()
            ready = waits_until(
                lambda: self.says("Ready after") or self._has_ended(), START_SECONDS
            )
        if not ready or self._has_ended():
            self.stop()
            raise AssertionError(f"the stack did not start\n{self.tails()}")
        return self

    def launch(self) -> None:
        """Start without waiting."""
        self.data_dir.mkdir(parents=True, exist_ok=True)
        with self.output.open("wb") as output:
            self._process = subprocess.Popen(
                (str(self.callslip), "up", "--no-examples"),
                env=self.environ,
                cwd=self.cwd,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def stop(self) -> int:
        """Stop as a service manager does; the exit code."""
        if self._process is None:
            return 0
        self._process.terminate()
        try:
            return self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise AssertionError(f"the stack did not stop\n{self.tails()}") from None

    def pids(self, role: str) -> list[int]:
        """The processes of a part, its leader first, then those it started (prefork children)."""
        leader = self.running.parts[role].pid
        return [leader, *(p.pid for p in psutil.Process(leader).children(recursive=True))]

    def family(self) -> list[int]:
        """Every process there is because of this stack."""
        return [self.process.pid, *(p.pid for p in _children(self.process.pid))]

    def kill(self, role: str) -> None:
        """SIGKILL a part and everything it started, as a machine out of memory does."""
        self._signal(role, signal.SIGKILL)

    def hang(self, role: str) -> None:
        """SIGSTOP a part and everything it started: it lives and does nothing."""
        self._signal(role, signal.SIGSTOP)

    def wait_until_back(self, role: str) -> float:
        """Return once a killed or hung part is ready again; the seconds since the signal."""
        before, since = self._signalled.pop(role)
        back = waits_until(lambda: self._times_ready(role) > before, START_SECONDS)
        assert back, self.tails()
        return time.monotonic() - since

    def _signal(self, role: str, number: signal.Signals) -> None:
        self._signalled[role] = self._times_ready(role), time.monotonic()
        os.killpg(self.running.parts[role].pid, number)

    def says(self, text: str) -> bool:
        """Whether the terminal has shown this."""
        return self.output.exists() and text in self.output.read_text()

    def tails(self) -> str:
        """The ends of what it printed and of every log, for a failure message."""
        files = [self.output, *sorted((self.data_dir / "logs").glob("*.log"))]
        return "\n".join(f"--- {file}\n{_tail(file)}" for file in files if file.exists())

    def _has_ended(self) -> bool:
        return self.process.poll() is not None

    def _times_ready(self, role: str) -> int:
        lines = self.output.read_text().splitlines()
        return sum(line.split()[:3] == [role, "ready", "after"] for line in lines)


def _has_memory() -> bool:
    """Whether another stack fits; with too many the kernel would kill processes of the run."""
    return psutil.virtual_memory().available > MEMORY_BYTES


def _children(pid: int) -> list[psutil.Process]:
    return [] if is_gone(pid) else psutil.Process(pid).children(recursive=True)


def _tail(file: Path) -> str:
    return "\n".join(file.read_text(errors="replace").splitlines()[-TAIL_LINES:])
