"""A thread that writes the audit log and the usage of keys, so that no request waits for it.

A batch is one transaction of the ledger a second at most. The end of the process writes the rest; a
killed process loses its last second.
"""

import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from callslip.errors import CallslipError
from callslip.stores.ledger import AuditEntry, Ledger, Used
from callslip.stores.ledger.answers.model_usage import day_of

log = logging.getLogger(__name__)

WAITING = 20_000
"""The most uses in memory. If the ledger is away for longer, a row says how many were lost."""

SECONDS = 1.0
"""The seconds between two transactions."""

LAST_SECONDS = 3.0
"""Seconds to write the rest when the process ends."""

LOST = "lost"
"""The action of a row that says how many uses could not be recorded."""


@dataclass(frozen=True)
class Use:
    """A use of a key: its row, the id of the key, the name that its usage counts for, its usage."""

    entry: AuditEntry
    key_id: str | None = None
    account: str | None = None
    used: Used = field(default_factory=Used)


class UseRecorder:
    """Accepts uses at once, and writes them in its own thread."""

    def __init__(self, ledger: Callable[[], Ledger]) -> None:
        self._ledger = ledger
        self._waiting: queue.Queue[Use] = queue.Queue(WAITING)
        self._lost, self._failing = 0, False
        self._ending = threading.Event()
        self._writing = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="audit", daemon=True)
        self._thread.start()

    def put(self, use: Use) -> None:
        """Queue a use; count it as lost if too many wait."""
        try:
            self._waiting.put_nowait(use)
        except queue.Full:
            self._lost += 1

    def flush(self) -> None:
        """Write what waits. Raises CallslipError if the ledger does not answer; nothing is lost."""
        with self._writing:
            uses: list[Use] = []
            while len(uses) < WAITING:
                try:
                    uses.append(self._waiting.get_nowait())
                except queue.Empty:
                    break
            lost, self._lost = self._lost, 0
            try:
                self._write(uses, lost)
            except BaseException:
                self._lost += lost
                for use in uses:
                    self.put(use)
                raise

    def close(self) -> None:
        """Write the rest; wait for it for LAST_SECONDS at most."""
        self._ending.set()
        self._thread.join(LAST_SECONDS)

    def _run(self) -> None:
        while not self._ending.wait(SECONDS):
            self._flush_safely()
        self._flush_safely()

    def _flush_safely(self) -> None:
        try:
            self.flush()
            self._failing = False
        except CallslipError as error:
            self._warn(error.detail)
        except Exception as error:
            self._warn(type(error).__name__)

    def _warn(self, reason: str) -> None:
        """Log the first failure of each outage."""
        if not self._failing:
            log.warning("the audit log waits: %s", reason)
        self._failing = True

    def _write(self, uses: Sequence[Use], lost: int) -> None:
        entries = [use.entry for use in uses]
        if lost:
            ids = {"uses": str(lost)}
            entries.append(AuditEntry(time.time(), "callslip", "system", LOST, 503, ids))
        if not entries:
            return
        ledger, used, last = self._ledger(), dict[tuple[str, int], Used](), dict[str, float]()
        for use in uses:
            if use.account is not None:
                of = use.account, day_of(use.entry.at)
                used[of] = used.get(of, Used()) + use.used
            if use.key_id is not None:
                last[use.key_id] = use.entry.at
        ledger.audit_log.append(entries, used=used, last_used=last)
