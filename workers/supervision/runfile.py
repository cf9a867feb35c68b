"""Records the processes of `callslip up` in the data folder, to find them and to end leftovers."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Self, TypeVar

import psutil
from pydantic import SecretStr

from callslip.errors import StartError

T = TypeVar("T")

NAME = "run.json"

LOCK = "up.lock"

MARK = "SUPERVISED_BY_CALLSLIP_IN"
"""The environment variable of every part, with the data folder: finds parts without the file."""

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

CLOCK_SLACK = 5.0
"""Seconds by which two readings of a process's start by the clock may differ."""

GRACE = 5.0
"""Seconds between SIGTERM and SIGKILL for leftovers."""


@dataclass(frozen=True)
class Process:
    """A process. Its start distinguishes the process from a later one with its id.

    The start is the kernel's `ticks` since the boot with the id `boot`, which do not change when
    the clock is set. `boot` is empty on systems without both, and in a file of an earlier
    version; then `started` (Unix time) distinguishes.
    """

    pid: int
    started: float
    boot: str = ""
    ticks: int = 0

    @classmethod
    def of(cls, pid: int) -> Self:
        """The running process with this id. Raises psutil.NoSuchProcess if there is none."""
        started, boot = psutil.Process(pid).create_time(), boot_id()
        return cls(pid, started, boot, ticks_of(pid)) if boot else cls(pid, started)

    def is_alive(self) -> bool:
        """Whether the process is running; a zombie is not."""
        with suppress(psutil.NoSuchProcess):
            status = psutil.Process(self.pid).status()
            return self.is_same(Process.of(self.pid)) and status != psutil.STATUS_ZOMBIE
        return False

    def is_replaced(self) -> bool:
        """Whether another process has the id of this one now."""
        with suppress(psutil.NoSuchProcess):
            return not self.is_same(Process.of(self.pid))
        return False

    def is_same(self, other: "Process") -> bool:
        """Whether both records are about the same process."""
        if self.boot and other.boot:
            same = (self.boot, self.ticks) == (other.boot, other.ticks)
        else:
            same = abs(self.started - other.started) < CLOCK_SLACK
        return self.pid == other.pid and same

    def is_of_earlier_boot(self) -> bool:
        """Whether the system was booted since the process started."""
        boot = boot_id()
        if self.boot and boot:
            return self.boot != boot
        return self.started < psutil.boot_time()


def boot_id() -> str:
    """The id of the system's boot, in a container that of its host; empty if there is none."""
    with suppress(OSError):
        return BOOT_ID.read_text(encoding="ascii").strip()
    return ""


def ticks_of(pid: int) -> int:
    """The kernel's ticks from the boot to the start of a process, on Linux.

    Raises psutil.NoSuchProcess if there is none.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError) as error:
        raise psutil.NoSuchProcess(pid) from error
    return int(stat.rpartition(b")")[2].split()[19])  # field 22; the name, field 2, may have a ")"


@dataclass(frozen=True)
class RunFile:
    """The running supervisor, its parts (each the leader of a process group), and the URLs."""

    supervisor: Process
    api_url: str
    broker_url: str
    chroma_url: str | None
    parts: dict[str, Process] = field(default_factory=dict)
    chroma_tenant: str | None = None

    def is_running(self) -> bool:
        """Whether the supervisor that wrote the file is still running."""
        return self.supervisor.is_alive()

    def chroma(self) -> dict[str, object]:
        """The settings `chroma.url` and `chroma.tenant`, without `chroma`."""
        tenant = self.chroma_tenant
        return {"url": self.chroma_url, "tenant": None if tenant is None else SecretStr(tenant)}

    def write(self, data_dir: Path) -> None:
        """Replace the file atomically, also over a power cut.

        Only its owner can read it: it contains passwords.
        """
        draft = data_dir / f"{NAME}.new"
        draft.touch(mode=0o600)
        with draft.open("w", encoding="utf-8") as file:
            json.dump(asdict(self), file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(data_dir / NAME)


def read(data_dir: Path) -> RunFile | None:
    """The record of the programs in this folder, running or killed; None after a clean stop.

    Raises StartError if the file is empty or damaged, for instance by a full disk or a power cut.
    """
    file = data_dir / NAME
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
        values["supervisor"] = _known(Process, values["supervisor"])
        values["parts"] = {name: _known(Process, part) for name, part in values["parts"].items()}
        return _known(RunFile, values)
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StartError(
            f"{file}, which says what runs there, is empty or damaged.",
            hint="Start `callslip up` again: it ends what is left of Callslip on this folder.",
        ) from error


def _known(kind: type[T], values: dict[str, Any]) -> T:
    """Make an object without the values that only a later version has."""
    return kind(**{each.name: values[each.name] for each in fields(kind) if each.name in values})  # type: ignore[arg-type]  # of a dataclass


def recorder(run: RunFile, data_dir: Path, leave_out: str) -> Callable[[Mapping[str, int]], None]:
    """Return the function that updates the file; its argument is the process ids by part name.

    The file omits the part `leave_out`: the guard, which reads the file to end the other parts.
    A part that runs on keeps its start, also if the clock was set. The function raises OSError if
    it cannot write, for instance on a full disk.
    """
    parts: dict[str, Process] = {}

    def record(pids: Mapping[str, int]) -> None:
        before = dict(parts)
        parts.clear()
        for name, pid in pids.items():
            with suppress(psutil.NoSuchProcess):
                process = Process.of(pid)
                known = before.get(name, process)
                parts[name] = known if known.is_same(process) else process
        parts.pop(leave_out, None)
        replace(run, parts=parts).write(data_dir)

    return record


def remove(data_dir: Path) -> None:
    """Remove the file, because no program is running."""
    (data_dir / NAME).unlink(missing_ok=True)


@contextmanager
def locked(data_dir: Path) -> Iterator[None]:
    """Lock the folder. Raises StartError, which names the process that already has the lock."""
    from filelock import FileLock, Timeout  # takes 80 ms, which commands that only read save

    try:
        with FileLock(data_dir / LOCK, timeout=0):
            yield
    except Timeout as error:
        who = ""
        with suppress(StartError):
            if run := read(data_dir):
                who = f" as process {run.supervisor.pid} at {run.api_url}"
        raise StartError(
            f"Callslip runs in {data_dir} already{who}.",
            hint="Use that one, or stop it (Ctrl-C where it was started, or `kill` that process),"
            " or give CALLSLIP_DATA_DIR another folder.",
        ) from error


def end_left(data_dir: Path) -> None:
    """End the parts of a supervisor that was killed, also if the file is empty or damaged."""
    try:
        run = read(data_dir)
    except StartError:
        _end(_marked(data_dir))
    else:
        if run is not None:
            end_leftovers(run)


def end_leftovers(run: RunFile) -> None:
    """End every process group of a supervisor that was killed; return once none is left.

    A group may outlive its leader, so the function finds the groups by their members.
    """
    if run.supervisor.is_of_earlier_boot():
        return  # no process outlives a reboot; others may have the ids
    _end({part.pid for part in run.parts.values() if not part.is_replaced()})


def _marked(data_dir: Path) -> set[int]:
    """The process groups of the parts of this folder, without the group of this process."""
    groups = set()
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):  # the process of another user, or an ended one
            if process.environ().get(MARK) == str(data_dir):
                groups.add(os.getpgid(process.pid))
    return groups - {os.getpgid(0)}


def _end(groups: set[int]) -> None:
    _signal(groups, signal.SIGTERM)
    deadline = time.monotonic() + GRACE
    while (left := _living(groups)) and time.monotonic() < deadline:
        time.sleep(0.1)
    _signal(left, signal.SIGKILL)
    while _living(left):
        time.sleep(0.1)


def _living(groups: Iterable[int]) -> set[int]:
    """The groups with a member that is not a zombie."""
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
