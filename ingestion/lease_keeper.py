"""Keeping a lease alive while a step works."""

import logging
import threading
from types import TracebackType

from callslip.errors import LeaseLost, StoreDown
from stores.ledger import Claim, Ledger

log = logging.getLogger(__name__)


class LeaseKeeper:
    """Renews a claim's lease from a thread, three times in its length, until the block ends."""

    def __init__(self, ledger: Ledger, claim: Claim) -> None:
        self._ledger = ledger
        self._claim = claim
        self._stop = threading.Event()
        self._lost = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="lease-keeper", daemon=True)

    def check(self) -> None:
        """Raise LeaseLost when another worker may have the step: what follows would be in vain."""
        if self._lost.is_set():
            raise LeaseLost(
                f"step {self._claim.step!r} of document {self._claim.document_id} was taken over"
            )

    def __enter__(self) -> "LeaseKeeper":
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
        while not self._stop.wait(self._claim.lease_seconds / 3):
            try:
                self._ledger.leases.renew(self._claim)
            except LeaseLost:
                self._lost.set()
                return
            except StoreDown as error:
                log.warning("cannot renew the lease of %s: %s", self._claim.document_id, error)
