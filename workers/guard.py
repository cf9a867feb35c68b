"""Ends what `callslip up` runs when that is killed and can no longer do it itself.

It is a process beside the supervisor because no signal tells a process that its parent is gone
everywhere (Linux's PR_SET_PDEATHSIG reaches children only, not theirs, and cannot insist).
"""

import os
import sys
import time
from pathlib import Path

from workers import runfile

LOOK_SECONDS = 0.5


def watch(data_dir: Path, parent: int) -> None:
    """Wait until `parent` is no longer this process's parent, then end what it ran."""
    while os.getppid() == parent:
        time.sleep(LOOK_SECONDS)
    run = runfile.read(data_dir)
    if run and run.supervisor.pid == parent:
        runfile.end_leftovers(run)


if __name__ == "__main__":
    watch(Path(sys.argv[1]), int(sys.argv[2]))
