"""Recording searches beside the answers: a thread writes what the searches leave in a queue.

Leaving a trace costs microseconds. While the ledger does not keep up, or does not answer, traces
are dropped, never an answer delayed.
"""

import atexit
import logging
import queue
import threading
from collections.abc import Callable, Sequence

from callslip.errors import CallslipError
from config import get_settings
from models.per_process import PerProcess
from retrieval.learning import Learning
from retrieval.trace import Trace
from tasks.process import ledger

log = logging.getLogger(__name__)

WAITING = 1000
"""Traces in memory; more are dropped."""

TOGETHER = 50
"""Traces of one transaction, where so many wait."""

LAST_SECONDS = 2.0
"""For what is left when the process ends."""


class Recorder:
    """Takes traces at once and writes them in its own time."""

    def __init__(self, write: Callable[[Sequence[Trace]], None]) -> None:
        self._write = write
        self._dropped = 0
        self._waiting: queue.Queue[Trace | None] = queue.Queue(WAITING)
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)
        self._thread.start()

    def put(self, trace: Trace) -> bool:
        """Leave a trace; False where it is dropped because too many wait."""
        try:
            self._waiting.put_nowait(trace)
        except queue.Full:
            self._dropped += 1
            return False
        return True

    def close(self, seconds: float = LAST_SECONDS) -> None:
        """Write what is left, for so long at most."""
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
        """Those that wait, or the first that comes; and whether these are the last."""
        traces: list[Trace] = []
        while not traces or (len(traces) < TOGETHER and not self._waiting.empty()):
            found = self._waiting.get()
            if found is None:
                return traces, True
            traces.append(found)
        return traces, False

    def _write_safely(self, traces: Sequence[Trace]) -> None:
        try:
            self._write(traces)
        except CallslipError as error:
            log.warning("%d traces were not recorded: %s", len(traces), error.detail)
        except Exception as error:
            log.error("%d traces were not recorded: %s", len(traces), type(error).__name__)


def _make_learning() -> Learning:
    settings = get_settings()
    return Learning(ledger(), settings.memory, settings.traces)


def _make_recorder() -> Recorder:
    made = Recorder(learning().record)
    atexit.register(made.close)
    return made


learning = PerProcess(_make_learning).get
recorder = PerProcess(_make_recorder).get
