"""The lease of a collection's move: nobody else moves it, imports into it or drops its copies."""

import threading
import time
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Self

from callslip.errors import CallslipError, Conflict, StoreDown
from stores.ledger import Move, Moves

LEASE_SECONDS = 15.0
"""So long, at most, does a mover that was killed keep upserts and the next mover waiting."""


def take(moves: Moves, collection: str, store: str) -> Move:
    """Take the lease; one that a killed process left runs out soon. Conflict while one is held."""
    deadline = time.monotonic() + LEASE_SECONDS + 1
    while True:
        try:
            return moves.take(collection, store, lease_seconds=LEASE_SECONDS)
        except Conflict:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


class Hold(AbstractContextManager["Hold"]):
    """Renews a lease from a thread, three times in its length, and gives it up at the end."""

    def __init__(self, moves: Moves, move: Move) -> None:
        self._moves, self.move = moves, move
        self._stop = threading.Event()
        self._lost: CallslipError | None = None
        self._thread = threading.Thread(target=self._keep, name="move-keeper", daemon=True)

    def check(self) -> None:
        """Raise what took the lease away, where something did."""
        if self._lost is not None:
            raise self._lost

    def renew(self) -> None:
        """Renew it now; LeaseLost where somebody else may have it."""
        self._moves.renew(self.move)

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
        self._moves.release(self.move)

    def _keep(self) -> None:
        while not self._stop.wait(LEASE_SECONDS / 3):
            try:
                self._moves.renew(self.move)
            except StoreDown:
                continue  # the lease says whether it came back in time
            except CallslipError as error:
                self._lost = error
                return
