"""Renews a lease from a thread while its holder works."""

import logging
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from callslip.errors import CallslipError, StoreDown

log = logging.getLogger(__name__)


class LeaseKeeper:
    """Renews a lease from a thread, three times per lease length, until the block ends.

    `renew` raises LeaseLost if another process has the lease; `what` names the leased object in
    errors. While the ledger does not answer, the thread tries again: whether it succeeded in time
    shows at the next renewal.
    """

    def __init__(self, renew: Callable[[], object], lease_seconds: float, what: str) -> None:
        self.renew = renew
        self._seconds, self._what = lease_seconds, what
        self._stop = threading.Event()
        self._lost: CallslipError | None = None
        self._thread = threading.Thread(target=self._keep, name="lease-keeper", daemon=True)

    def check(self) -> None:
        """Raise the error that ended the lease, if there is one: further work would be wasted."""
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
