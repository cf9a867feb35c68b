"""The best hits of a retriever, ties broken by chunk id, even if the limit cuts a tie."""

from collections.abc import Callable, Iterable, Sequence

from callslip.stores.records import RetrieverHit

_SPARE = 4


def best(fetch: Callable[[int], Sequence[RetrieverHit]], limit: int) -> list[RetrieverHit]:
    """Take the best `limit` hits from an index that breaks ties arbitrarily.

    `fetch(n)` returns the n best, best first, or fewer if there are no more. `best` fetches more
    hits than the limit until it has the whole tie that the limit cuts.
    """
    if limit < 1:
        return []
    wanted = limit + _SPARE
    while True:
        hits = fetch(wanted)
        if len(hits) < wanted or hits[-1].score < hits[limit - 1].score:
            return ranked(hits)[:limit]
        wanted *= 4


def ranked(hits: Iterable[RetrieverHit]) -> list[RetrieverHit]:
    """Sort by score, highest first, then by chunk id."""
    return sorted(hits, key=lambda hit: (-hit.score, hit.chunk_id))
