"""The best hits of one leg, ties broken by chunk id, also where the limit cuts through a tie."""

from collections.abc import Callable, Iterable, Sequence

from stores.records import LegHit

_SPARE = 4


def best(fetch: Callable[[int], Sequence[LegHit]], limit: int) -> list[LegHit]:
    """Take the best `limit` hits from an index that breaks ties as it likes.

    `fetch(n)` gives the n best, best first, fewer where there are no more. More than the limit is
    asked for until the tie that the limit cuts is whole.
    """
    if limit < 1:
        return []
    wanted = limit + _SPARE
    while True:
        hits = fetch(wanted)
        if len(hits) < wanted or hits[-1].score < hits[limit - 1].score:
            return ranked(hits)[:limit]
        wanted *= 4


def ranked(hits: Iterable[LegHit]) -> list[LegHit]:
    """Sort by score, highest first, then by chunk id."""
    return sorted(hits, key=lambda hit: (-hit.score, hit.chunk_id))
