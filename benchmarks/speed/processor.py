"""Processor time of the processes of a stack, by role."""

from contextlib import suppress

import psutil

from callslip.workers.supervision.runfile import RunFile


def seconds_by_role(run: RunFile) -> dict[str, float]:
    """Return what the supervisor and every part have spent, with the processes they started.

    The time of processes that have ended is included.
    """
    leaders = {"supervisor": run.supervisor.pid} | {
        name: part.pid for name, part in run.parts.items()
    }
    return {role: _family(pid, alone=role == "supervisor") for role, pid in leaders.items()}


def spent(before: dict[str, float], after: dict[str, float], units: int) -> dict[str, float]:
    """Return the seconds between two readings, for each of the units of work."""
    return {role: (seconds - before.get(role, 0.0)) / units for role, seconds in after.items()}


def _family(pid: int, *, alone: bool) -> float:
    leader, total = psutil.Process(pid), 0.0
    for process in [leader] if alone else [leader, *leader.children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            total += times.user + times.system
            if not alone:
                total += times.children_user + times.children_system
    return total
