"""Commands of Callslip as children of a worker: their memory goes with them."""

import logging
import subprocess
import sys
import time
from collections.abc import Sequence

from celery.worker import state
from redis.lock import Lock

log = logging.getLogger(__name__)

_WAIT_SECONDS = 5.0


def run(command: Sequence[str], lock: Lock, *, seconds: float | None = None) -> bool:
    """Run a command with the settings of this process; tell whether it succeeded.

    The child is ended when the worker is to stop, and after `seconds`; then raises TimeoutError.
    The lock is kept meanwhile.
    """
    with subprocess.Popen(
        (sys.executable, "-m", "callslip.cli", *command, "--json"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        try:
            errors = _awaited(child, lock, seconds)
        except BaseException:
            child.terminate()
            raise
    name = " ".join(command)
    if child.returncode:
        log.error("callslip %s ended with %d: %s", name, child.returncode, errors.strip()[-500:])
    else:
        log.info("callslip %s is done", name)
    return child.returncode == 0


def _awaited(child: subprocess.Popen[str], lock: Lock, seconds: float | None) -> str:
    """What a child printed as errors."""
    until = None if seconds is None else time.monotonic() + seconds
    while True:
        left = _WAIT_SECONDS if until is None else min(_WAIT_SECONDS, until - time.monotonic())
        try:
            return child.communicate(timeout=max(0.0, left))[1]
        except subprocess.TimeoutExpired:
            lock.reacquire()
            if until is not None and time.monotonic() >= until:
                child.kill()
                raise TimeoutError from None
            for stop in (state.should_stop, state.should_terminate):
                if stop is not None and stop is not False:
                    child.terminate()
