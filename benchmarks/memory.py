"""Memory of the processes of a stack, by role."""

from contextlib import suppress
from dataclasses import dataclass

import psutil

from callslip.workers.runfile import RunFile


@dataclass(frozen=True)
class RoleMemory:
    """The memory of each process of one role, in MB of 1,000,000 bytes."""

    role: str
    megabytes: tuple[float, ...]


def by_role(run: RunFile) -> list[RoleMemory]:
    """Return the supervisor and every part with the processes that it started.

    The processes of a role are in descending order of memory.
    """
    leaders = {"supervisor": run.supervisor.pid} | {
        name: part.pid for name, part in run.parts.items()
    }
    return [
        RoleMemory(role, _family(pid, alone=role == "supervisor")) for role, pid in leaders.items()
    ]


def unit() -> str:
    """Return `PSS`, which counts pages shared by processes once in sum, or `RSS` without it."""
    return "PSS" if hasattr(psutil.Process().memory_full_info(), "pss") else "RSS"


def _family(pid: int, *, alone: bool) -> tuple[float, ...]:
    leader = psutil.Process(pid)
    processes = [leader] if alone else [leader, *leader.children(recursive=True)]
    megabytes = []
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            info = process.memory_full_info()
            megabytes.append(getattr(info, "pss", info.rss) / 1e6)
    return tuple(sorted(megabytes, reverse=True))
