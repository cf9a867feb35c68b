"""How the process of a lost worker of pytest-xdist ended, which xdist does not say."""

import signal
import subprocess

from xdist.workermanage import WorkerController

SECONDS = 20.0
"""How long a process is awaited whose pipe is closed; execnet ends it after 15 s."""


def end_of(node: WorkerController) -> str:
    """A sentence about the process."""
    process: subprocess.Popen[bytes] = node.gateway._io.popen
    who = f"[{node.gateway.id}] process {process.pid}"
    try:
        code = process.wait(SECONDS)
    except subprocess.TimeoutExpired:
        return f"{who} closed its pipe and still runs {SECONDS:.0f} s later"
    if code < 0:
        return f"{who} was ended by signal {-code} ({signal.strsignal(-code)})"
    return f"{who} ended with exit code {code}"
