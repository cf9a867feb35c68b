"""Memory of the processes of a stack, by role."""

from contextlib import suppress
from dataclasses import dataclass

import psutil

from workers.runfile import RunFile


@dataclass(frozen=True)
class RoleMemory:
    """What the processes of one role hold, in MB of 1,000,000 bytes."""

    role: str
    megabytes: tuple[float, ...]


def by_role(run: RunFile) -> list[RoleMemory]:
    """Every part with all processes that it started, most memory first, and the supervisor."""
    leaders = {"supervisor": run.supervisor.pid} | {
        name: part.pid for name, part in run.parts.items()
    }
    return [
        RoleMemory(role, _family(pid, alone=role == "supervisor")) for role, pid in leaders.items()
    ]


def unit() -> str:
    """`PSS` where the system tells it: pages that processes share are counted once in sum."""
    return "PSS" if hasattr(psutil.Process().memory_full_info(), "pss") else "RSS"


def _family(pid: int, *, alone: bool) -> tuple[float, ...]:
    leader = psutil.Process(pid)
    processes = [leader] if alone else [leader, *leader.children(recursive=True)]
    found = []
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            held = process.memory_full_info()
            found.append(getattr(held, "pss", held.rss) / 1e6)
    return tuple(sorted(found, reverse=True))
