"""What `callslip up` runs in a folder: found by other programs, and ended if it was left over."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Self

import psutil
from filelock import FileLock, Timeout

from callslip.errors import StartError

NAME = "run.json"

LOCK = "up.lock"

CLOCK_SLACK = 5.0
"""Seconds by which two readings of a process's start may differ when the clock is set meanwhile."""

GRACE = 5.0
"""Seconds between SIGTERM and SIGKILL for leftovers."""


@dataclass(frozen=True)
class Process:
    """A process, told apart from a later one of the same id by when it started (Unix time)."""

    pid: int
    started: float

    @classmethod
    def of(cls, pid: int) -> Self:
        """The running process of this id; raises psutil.NoSuchProcess."""
        return cls(pid, psutil.Process(pid).create_time())

    def is_alive(self) -> bool:
        """Whether it runs; a zombie does not."""
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(self.pid)
            same = abs(process.create_time() - self.started) < CLOCK_SLACK
            return same and process.status() != psutil.STATUS_ZOMBIE
        return False

    def is_replaced(self) -> bool:
        """Whether its id belongs to another process by now."""
        with suppress(psutil.NoSuchProcess):
            return abs(psutil.Process(self.pid).create_time() - self.started) >= CLOCK_SLACK
        return False


@dataclass(frozen=True)
class RunFile:
    """What runs: the supervisor, its parts (each the leader of a process group), and the URLs."""

    supervisor: Process
    api_url: str
    broker_url: str
    chroma_url: str | None
    parts: dict[str, Process] = field(default_factory=dict)

    def is_running(self) -> bool:
        """Whether the supervisor that wrote this still runs."""
        return self.supervisor.is_alive()

    def write(self, data_dir: Path) -> None:
        """Put it in place at once and readable by its owner only: a URL may hold a password."""
        draft = data_dir / f"{NAME}.new"
        draft.touch(mode=0o600)
        draft.write_text(json.dumps(asdict(self), indent=1))
        draft.replace(data_dir / NAME)


def read(data_dir: Path) -> RunFile | None:
    """What runs, or last ran and was killed, in this folder; None after a clean stop."""
    try:
        values = json.loads((data_dir / NAME).read_text())
        values["supervisor"] = Process(**values["supervisor"])
        values["parts"] = {name: Process(**part) for name, part in values["parts"].items()}
        return RunFile(**values)
    except FileNotFoundError:
        return None


def recorder(run: RunFile, data_dir: Path, leave_out: str) -> Callable[[Mapping[str, int]], None]:
    """What keeps the file true, given process ids by name whenever one changes.

    The guard is left out: it reads the file to end the others.
    """

    def record(pids: Mapping[str, int]) -> None:
        parts = {}
        for name, pid in pids.items():
            with suppress(psutil.NoSuchProcess):
                parts[name] = Process.of(pid)
        parts.pop(leave_out, None)
        with suppress(OSError):  # a full disk must not stop what runs
            replace(run, parts=parts).write(data_dir)

    return record


def remove(data_dir: Path) -> None:
    """Say that nothing runs."""
    (data_dir / NAME).unlink(missing_ok=True)


@contextmanager
def alone(data_dir: Path) -> Iterator[None]:
    """Hold the folder; raises StartError, saying who has it, when it is held already."""
    try:
        with FileLock(data_dir / LOCK, timeout=0):
            yield
    except Timeout as error:
        run = read(data_dir)
        who = f" as process {run.supervisor.pid} at {run.api_url}" if run else ""
        raise StartError(
            f"Callslip runs in {data_dir} already{who}.",
            hint="Use that one, or stop it (Ctrl-C where it was started, or `kill` that process),"
            " or give CALLSLIP_DATA_DIR another folder.",
        ) from error


def end_leftovers(run: RunFile) -> None:
    """End every process group of a supervisor that was killed; return when none is left.

    A group may outlive its leader, so it is looked for by its members.
    """
    if run.supervisor.started < psutil.boot_time():
        return  # nothing outlives a reboot, and the ids mean others now
    groups = {part.pid for part in run.parts.values() if not part.is_replaced()}
    _signal(groups, signal.SIGTERM)
    deadline = time.monotonic() + GRACE
    while (left := _living(groups)) and time.monotonic() < deadline:
        time.sleep(0.1)
    _signal(left, signal.SIGKILL)
    while _living(left):
        time.sleep(0.1)


def _living(groups: Iterable[int]) -> set[int]:
    """Those groups with a member that is more than a zombie."""
    living, groups = set(), set(groups)
    for process in psutil.process_iter():
        with suppress(ProcessLookupError, psutil.NoSuchProcess):
            group = os.getpgid(process.pid)
            if group in groups and process.status() != psutil.STATUS_ZOMBIE:
                living.add(group)
    return living


def _signal(groups: Iterable[int], number: signal.Signals) -> None:
    for group in groups:
        with suppress(ProcessLookupError, PermissionError):  # macOS: a group of zombies only
            os.killpg(group, number)
