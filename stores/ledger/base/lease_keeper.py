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
    errors. `give_back`, if there is one, ends the lease, so that another process may take it at
    once. While the ledger does not answer, the thread tries again: whether it succeeded in time
    shows at the next renewal.
    """

    def __init__(
        self,
        renew: Callable[[], object],
        lease_seconds: float,
        what: str,
        give_back: Callable[[], object] | None = None,
    ) -> None:
        self.renew, self.give_back, self.what = renew, give_back, what
        self._seconds = lease_seconds
        self._stop = threading.Event()
        self._lost: CallslipError | None = None
        self._thread = threading.Thread(target=self._keep, name="lease-keeper", daemon=True)

    def check(self) -> None:
        """Raise the error that ended the lease, if there is one: further work would be wasted."""
        if self._lost is not None:
            raise self._lost

    @property
    def has_lost(self) -> bool:
        """Whether the lease has ended, as far as its last renewal showed."""
        return self._lost is not None

    def __enter__(self) -> Self:
        _working.add(self)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _working.discard(self)
        self._stop.set()
        self._thread.join()

    def _keep(self) -> None:
        while not self._stop.wait(self._seconds / 3):
            try:
                self.renew()
            except StoreDown as error:
                log.warning("cannot renew the lease of %s: %s", self.what, error)
            except CallslipError as error:
                self._lost = error
                return


_working: set[LeaseKeeper] = set()


def give_back_all() -> list[str]:
    """End the leases of this process, which is about to end; return what they were on.

    Only leases that can be given back; the others run out. The work must not go on.
    """
    ended = []
    for keeper in list(_working):
        if keeper.give_back is None:
            continue
        try:
            keeper.give_back()
        except CallslipError as error:
            log.warning("cannot give back the lease of %s: %s", keeper.what, error)
        else:
            ended.append(keeper.what)
    return ended
