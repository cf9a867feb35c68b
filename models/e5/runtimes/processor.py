"""Names what the processor at hand can compute."""

import platform
from functools import cache
from pathlib import Path


@cache
def processor_flags() -> frozenset[str]:
    """Return Linux's names of the processor's instructions; none on another system."""
    if platform.machine() != "x86_64":
        return frozenset()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return frozenset()
    flags = next((line for line in lines if line.startswith("flags")), "")
    return frozenset(flags.partition(":")[2].split())
