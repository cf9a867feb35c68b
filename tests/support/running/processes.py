"""What tests ask of processes: are they gone, and waiting until something is so."""

import time
from collections.abc import Callable

import psutil


def is_gone(pid: int) -> bool:
    """Whether the process ended; a zombie did."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def waits_until(condition: Callable[[], object], seconds: float = 60.0) -> bool:
    """Whether the condition came to hold; the bound is generous, for a busy machine."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
