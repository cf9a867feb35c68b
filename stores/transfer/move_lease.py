"""The lease of a collection's move: excludes other moves, imports and deletions of copies."""

import time
from types import TracebackType

from callslip.errors import AttachedReadOnly, Conflict
from callslip.stores.ledger import LeaseKeeper, Move, Moves

LEASE_SECONDS = 15.0
"""The longest time that a killed mover keeps upserts and the next mover waiting."""


def take(moves: Moves, collection: str, store: str) -> Move:
    """Take the lease; wait until the lease of a killed process has expired.

    Raises Conflict if another process still has the lease then.
    """
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


class MoveLeaseKeeper(LeaseKeeper):
    """Renews the lease while the block runs, and releases it at the end."""

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
