"""Keeping a lease alive while its holder works."""

import logging
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from callslip.errors import LeaseLost, StoreDown
from stores.ledger import Claim, Ledger, Run

log = logging.getLogger(__name__)


class LeaseKeeper:
    """Renews a lease from a thread, three times in its length, until the block ends.

    `renew` raises LeaseLost where the lease is another's; `what` names what it is on.
    """

    def __init__(self, renew: Callable[[], object], lease_seconds: float, what: str) -> None:
        self._renew, self._seconds, self._what = renew, lease_seconds, what
        self._stop = threading.Event()
        self._lost = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="lease-keeper", daemon=True)

    @classmethod
    def of_step(cls, ledger: Ledger, claim: Claim) -> Self:
        """Keeps the claim of a step."""
        what = f"step {claim.step!r} of document {claim.document_id}"
        return cls(lambda: ledger.leases.renew(claim), claim.lease_seconds, what)

    @classmethod
    def of_run(cls, ledger: Ledger, run: Run) -> Self:
        """Keeps the run over a source."""
        what = f"run of source {run.source.source_id}"
        return cls(lambda: ledger.source_runs.renew(run), run.lease_seconds, what)

    def check(self) -> None:
        """Raise LeaseLost when another worker may have it: what follows would be in vain."""
        if self._lost.is_set():
            raise LeaseLost(f"{self._what} was taken over")

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
                self._renew()
            except LeaseLost:
                self._lost.set()
                return
            except StoreDown as error:
                log.warning("cannot renew the lease of %s: %s", self._what, error)
