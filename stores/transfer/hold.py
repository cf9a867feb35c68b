"""The lease of a collection's move: nobody else moves it, imports into it or drops its copies."""

import time
from types import TracebackType

from callslip.errors import AttachedReadOnly, Conflict
from stores.ledger import LeaseKeeper, Move, Moves

LEASE_SECONDS = 15.0
"""So long, at most, does a mover that was killed keep upserts and the next mover waiting."""


def take(moves: Moves, collection: str, store: str) -> Move:
    """Take the lease; one that a killed process left runs out soon. Conflict while one is held."""
    deadline = time.monotonic() + LEASE_SECONDS + 1
    while True:
        try:
            return moves.take(collection, store, lease_seconds=LEASE_SECONDS)
        except AttachedReadOnly:  # waiting changes nothing
            raise
        except Conflict:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


class Hold(LeaseKeeper):
    """Keeps the lease while the block runs, and gives it up at the end."""

    def __init__(self, moves: Moves, move: Move) -> None:
        self._moves, self.move = moves, move
        what = f"collection {move.collection!r}"
        super().__init__(lambda: moves.renew(self.move), move.lease_seconds, what)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        super().__exit__(kind, error, trace)
        self._moves.release(self.move)
