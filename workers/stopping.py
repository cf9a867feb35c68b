"""Ends a worker soon after SIGTERM, however long its tasks would still take.

Celery waits for the tasks that run. A step may run for hours, and nothing is lost when it ends in
the middle; so a process that still works after GRACE_SECONDS gives its leases back, which counts as
no crash, and exits. A process of a prefork pool hears of the stop by SIGUSR2.
"""

import logging
import os
import signal
import threading
import time
from contextlib import suppress
from typing import Any

import psutil
from celery.signals import worker_init, worker_process_init, worker_shutting_down

from callslip.stores.ledger.base.lease_keeper import give_back_all

log = logging.getLogger(__name__)

GRACE_SECONDS = 3.0
"""Seconds that tasks have to end by themselves."""

AFTER_CHILDREN = 1.5
"""Seconds by which the main process outlasts the processes of its pool."""

_workers: list[Any] = []


def end_soon_when_stopped() -> None:
    """Bound the time that workers of this process take to stop, once they run."""
    worker_init.connect(_remember)
    worker_process_init.connect(_listen)
    worker_shutting_down.connect(_stop)


def _remember(sender: Any = None, **_: Any) -> None:
    """Remember the worker of this process, whose pool has the processes to tell."""
    _workers[:] = [sender]


def _listen(**_: Any) -> None:
    """Wait for the stop in a thread: the main thread may be inside a library for seconds."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
    threading.Thread(target=_wait_for_stop, name="stopping", daemon=True).start()


def _stop(**_: Any) -> None:
    """Tell the pool, and bound the time until this process ends. Runs in a signal handler."""
    threading.Thread(target=_end_main, name="stopping", daemon=True).start()


def _wait_for_stop() -> None:
    signal.sigwait({signal.SIGUSR2})
    _end(GRACE_SECONDS)


def _end_main() -> None:
    pids = [pid for worker in _workers for pid in worker.pool.info.get("processes", ())]
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGUSR2)
    _end(GRACE_SECONDS + AFTER_CHILDREN if pids else GRACE_SECONDS)


def _end(seconds: float) -> None:
    time.sleep(seconds)
    for what in give_back_all():
        log.warning("stopped in the middle of %s: another process does it again", what)
    for child in psutil.Process().children():  # the scheduler, readers of files
        with suppress(psutil.NoSuchProcess):
            child.terminate()
    os._exit(0)
