"""Renews leases from a thread while their holder works."""

import logging
import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from callslip.errors import CallslipError, StoreDown

log = logging.getLogger(__name__)


class Lease:
    """A lease of this process; `what` names the leased object in errors.

    `give_back`, if there is one, ends the lease, so that another process may take it at once.
    """

    def __init__(self, what: str, give_back: Callable[[], object] | None = None) -> None:
        self.what, self.give_back = what, give_back
        self.lost: CallslipError | None = None
        """The error that ended the lease, as far as its last renewal showed."""

    def check(self) -> None:
        """Raise the error that ended the lease, if there is one: further work would be wasted."""
        if self.lost is not None:
            raise self.lost

    @property
    def is_lost(self) -> bool:
        """Whether the lease has ended, as far as its last renewal showed."""
        return self.lost is not None


Renew = Callable[[Sequence[Lease]], Sequence[CallslipError | None]]
"""Renews leases; returns None for each, or the error by which it is lost. May raise StoreDown."""


class Renewals:
    """Renews leases together from a thread, three times per lease length, until the block ends.

    While the ledger does not answer, the thread tries again: whether it succeeded in time shows at
    the next renewal.
    """

    def __init__(self, leases: Sequence[Lease], renew: Renew, lease_seconds: float) -> None:
        self._leases, self._renew, self._seconds = leases, renew, lease_seconds
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lease-keeper", daemon=True)

    def __enter__(self) -> Sequence[Lease]:
        _working.update(self._leases)
        if self._leases:
            self._thread.start()
        return self._leases

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _working.difference_update(self._leases)
        self._stop.set()
        if self._leases:
            self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self._seconds / 3):
            left = [lease for lease in self._leases if not lease.is_lost]
            if not left:
                return
            try:
                errors = self._renew(left)
            except StoreDown as error:
                more = f" and {len(left) - 1} more" if len(left) > 1 else ""
                log.warning("cannot renew the lease of %s%s: %s", left[0].what, more, error)
                continue
            except CallslipError as error:
                errors = [error] * len(left)
            for lease, lost in zip(left, errors, strict=True):
                lease.lost = lost


class LeaseKeeper(Lease):
    """A lease that is renewed until its block ends. `renew` raises LeaseLost if it is lost."""

    def __init__(self, renew: Callable[[], object], lease_seconds: float, what: str) -> None:
        super().__init__(what)
        self.renew = renew
        self._renewals = Renewals([self], self._renew_once, lease_seconds)

    def __enter__(self) -> Self:
        self._renewals.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._renewals.__exit__(kind, error, trace)

    def _renew_once(self, _: Sequence[Lease]) -> list[CallslipError | None]:
        self.renew()
        return [None]


_working: set[Lease] = set()


def give_back_all() -> list[str]:
    """End the leases of this process, which is about to end; return what they were on.

    Only leases that can be given back; the others run out. The work must not go on.
    """
    ended = []
    for lease in list(_working):
        if lease.give_back is None:
            continue
        try:
            lease.give_back()
        except CallslipError as error:
            log.warning("cannot give back the lease of %s: %s", lease.what, error)
        else:
            ended.append(lease.what)
    return ended
