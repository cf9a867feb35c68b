"""The suite's temporary folder, in memory where there is room: SQLite syncs thousands of times."""

import os
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

import psutil

MEMORY = Path("/dev/shm")

PREFIX = "callslip-tests-"

LEAST_BYTES = 6 * 1024**3
"""A run of the whole suite leaves less than this behind."""


def new_folder() -> Path:
    """An empty folder for this process: in memory, or on a disk where memory has no room."""
    remove_orphans()
    with suppress(OSError):
        folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=MEMORY))
        room = min(shutil.disk_usage(folder).free, psutil.virtual_memory().available)
        if room >= LEAST_BYTES and _runs_programs(folder):
            return folder
        shutil.rmtree(folder)
    return Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-"))


def remove_orphans() -> None:
    """Delete the folders of runs that have ended, as those that failed or were killed leave one."""
    for folder in MEMORY.glob(f"{PREFIX}*"):
        pid = folder.name.removeprefix(PREFIX).partition("-")[0]
        if pid.isdecimal() and not psutil.pid_exists(int(pid)):
            shutil.rmtree(folder, ignore_errors=True)


def _runs_programs(folder: Path) -> bool:
    """Whether a script in the folder may be executed: containers mount /dev/shm without."""
    script = folder / "true"
    script.write_text("#!/bin/sh\nexit 0\n")
    script.chmod(0o700)
    with suppress(OSError):
        return subprocess.run([script], check=False).returncode == 0
    return False
