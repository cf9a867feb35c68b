"""Keeping a lease alive while its holder works."""

import logging
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from callslip.errors import CallslipError, StoreDown

log = logging.getLogger(__name__)


class LeaseKeeper:
    """Renews a lease from a thread, three times in its length, until the block ends.

    `renew` raises LeaseLost where the lease is another's; `what` names what it is on. While the
    ledger does not answer it is tried again: the lease says whether that came in time.
    """

    def __init__(self, renew: Callable[[], object], lease_seconds: float, what: str) -> None:
        self.renew = renew
        self._seconds, self._what = lease_seconds, what
        self._stop = threading.Event()
        self._lost: CallslipError | None = None
        self._thread = threading.Thread(target=self._keep, name="lease-keeper", daemon=True)

    def check(self) -> None:
        """Raise what took the lease away, where something did: what follows would be in vain."""
        if self._lost is not None:
            raise self._lost

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _keep(self) -> None:
        while not self._stop.wait(self._seconds / 3):
            try:
                self.renew()
            except StoreDown as error:
                log.warning("cannot renew the lease of %s: %s", self._what, error)
            except CallslipError as error:
                self._lost = error
                return
