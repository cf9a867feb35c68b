"""Ends the programs of `callslip up` if that process is killed and cannot end them itself.

The guard is a separate process, because no signal tells a process on every system that its parent
has died (Linux's PR_SET_PDEATHSIG reaches direct children only).
"""

import os
import sys
import time
from pathlib import Path

from callslip.workers import runfile

LOOK_SECONDS = 0.5


def watch(data_dir: Path, parent: int) -> None:
    """Wait until `parent` is no longer this process's parent, then end the parent's programs."""
    while os.getppid() == parent:
        time.sleep(LOOK_SECONDS)
    run = runfile.read(data_dir)
    if run and run.supervisor.pid == parent:
        runfile.end_leftovers(run)


if __name__ == "__main__":
    watch(Path(sys.argv[1]), int(sys.argv[2]))
