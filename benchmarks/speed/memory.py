"""Memory of the processes of a stack, by role."""

import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from callslip.workers.supervision.runfile import RunFile


@dataclass(frozen=True)
class RoleMemory:
    """The memory of each process of one role, in MB of 1,000,000 bytes."""

    role: str
    megabytes: tuple[float, ...]
    anonymous: float = 0.0
    """What no file backs, of all processes in sum; 0 where the system does not say it."""


def by_role(run: RunFile) -> list[RoleMemory]:
    """Return the supervisor and every part with the processes that it started.

    The processes of a role are in descending order of memory.
    """
    leaders = {"supervisor": run.supervisor.pid} | {
        name: part.pid for name, part in run.parts.items()
    }
    return [_family(role, pid, alone=role == "supervisor") for role, pid in leaders.items()]


def unit() -> str:
    """Return `PSS`, which counts pages shared by processes once in sum, or `RSS` without it."""
    return "PSS" if hasattr(psutil.Process().memory_full_info(), "pss") else "RSS"


def _family(role: str, pid: int, *, alone: bool) -> RoleMemory:
    leader = psutil.Process(pid)
    processes = [leader] if alone else [leader, *leader.children(recursive=True)]
    megabytes, anonymous = [], 0.0
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            info = process.memory_full_info()
            megabytes.append(getattr(info, "pss", info.rss) / 1e6)
            anonymous += _anonymous(process.pid)
    return RoleMemory(role, tuple(sorted(megabytes, reverse=True)), anonymous)


def _anonymous(pid: int) -> float:
    with suppress(OSError):
        match = re.search(r"Pss_Anon:\s+(\d+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text())
        return int(match[1]) * 1024 / 1e6 if match else 0.0
    return 0.0
