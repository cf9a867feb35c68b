"""Ends the programs of `callslip up` if that process is killed and cannot end them itself.

The guard is a separate process, because no signal tells a process on every system that its parent
has died (Linux's PR_SET_PDEATHSIG reaches direct children only).
"""

import os
import sys
import time
from contextlib import suppress
from pathlib import Path

from callslip.errors import StartError
from callslip.workers.supervision import runfile

LOOK_SECONDS = 0.5


def watch(data_dir: Path, parent: int) -> None:
    """Wait until `parent` is no longer this process's parent, then end the parent's programs."""
    while os.getppid() == parent:
        time.sleep(LOOK_SECONDS)
    with suppress(StartError):  # the file is damaged: then the parts are found without it
        run = runfile.read(data_dir)
        if run is None or run.supervisor.pid != parent:
            return  # it ended them itself, or another one runs already
    runfile.end_left(data_dir)


if __name__ == "__main__":
    watch(Path(sys.argv[1]), int(sys.argv[2]))
