"""A thread that writes the traces of searches, so that no search waits for the ledger.

A search puts its trace into a queue, which takes microseconds. If the ledger is slow or does not
answer, traces are dropped; no response is delayed.
"""

import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence

from callslip.errors import CallslipError
from callslip.retrieval.tracing.trace import Trace

log = logging.getLogger(__name__)

WAITING = 1000
"""The most traces in memory; further ones are dropped."""

TOGETHER = 50
"""The most traces of one transaction."""

GATHER_SECONDS = 0.2
"""Seconds from the first trace of a transaction to its begin.

A transaction waits for the disk, and takes as much processor time for one trace as for five. A
request for a trace waits longer than this (`api.v1.feedback.PATIENCE_SECONDS`).
"""

LAST_SECONDS = 2.0
"""Seconds to write the remaining traces when the process ends."""


class Recorder:
    """Accepts traces at once, and writes them in its own thread."""

    def __init__(self, write: Callable[[Sequence[Trace]], None]) -> None:
        self._write = write
        self._dropped = 0
        self._waiting: queue.Queue[Trace | None] = queue.Queue(WAITING)
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)
        self._thread.start()

    def put(self, trace: Trace) -> bool:
        """Queue a trace; return False if the trace is dropped because too many wait."""
        try:
            self._waiting.put_nowait(trace)
        except queue.Full:
            self._dropped += 1
            return False
        return True

    def close(self, seconds: float = LAST_SECONDS) -> None:
        """Write the remaining traces; wait at most `seconds`."""
        try:
            self._waiting.put(None, timeout=seconds)
        except queue.Full:
            return
        self._thread.join(seconds)

    def _run(self) -> None:
        ended = False
        while not ended:
            traces, ended = self._next()
            if traces:
                self._write_safely(traces)
            if self._dropped:
                log.warning("%d traces were dropped: the ledger is slow", self._dropped)
                self._dropped = 0

    def _next(self) -> tuple[list[Trace], bool]:
        """Wait for a trace, and return it with those of the next GATHER_SECONDS.

        The flag says whether they are the last.
        """
        traces: list[Trace] = []
        until: float | None = None
        while len(traces) < TOGETHER:
            left = None if until is None else max(0.0, until - time.monotonic())
            try:
                trace = self._waiting.get(timeout=left)
            except queue.Empty:
                break
            if trace is None:
                return traces, True
            traces.append(trace)
            until = until or time.monotonic() + GATHER_SECONDS
        return traces, False

    def _write_safely(self, traces: Sequence[Trace]) -> None:
        try:
            self._write(traces)
        except CallslipError as error:
            log.warning("%d traces were not recorded: %s", len(traces), error.detail)
        except Exception as error:
            log.error("%d traces were not recorded: %s", len(traces), type(error).__name__)
