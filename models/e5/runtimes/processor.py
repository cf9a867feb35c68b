"""Names what the processor at hand can compute."""

import platform
from functools import cache
from pathlib import Path


@cache
def processor_flags() -> frozenset[str]:
    """Return Linux's names of the processor's instructions; none on another system."""
    return frozenset(_first_line("flags").split())


@cache
def processor_vendor() -> str:
    """Return the processor's own name of its vendor, such as `AuthenticAMD`; empty if unknown."""
    return _first_line("vendor_id").strip()


def _first_line(name: str) -> str:
    """The value of the first line of this name in Linux's description of x86-64 processors."""
    if platform.machine() != "x86_64":
        return ""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    line = next((line for line in lines if line.partition(":")[0].strip() == name), "")
    return line.partition(":")[2]
