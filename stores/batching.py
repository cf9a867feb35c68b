"""Writing a batch in slices, so that what was acknowledged before a loss is known."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from callslip.errors import BatchInterrupted, StoreDown
from stores.records import BatchOutcome

T = TypeVar("T")


def slices(
    items: Iterable[T], *, count: int, size: int, size_of: Callable[[T], int]
) -> Iterator[list[T]]:
    """Cut by a server's limits on the number of objects and on bytes; none is empty."""
    slice_: list[T] = []
    total = 0
    for item in items:
        bytes_ = size_of(item)
        if slice_ and (len(slice_) == count or total + bytes_ > size):
            yield slice_
            slice_, total = [], 0
        slice_.append(item)
        total += bytes_
    if slice_:
        yield slice_


def write(
    batch: Iterable[Sequence[T]],
    put: Callable[[Sequence[T]], Mapping[str, str]],
    id_of: Callable[[T], str],
    *,
    failed: Mapping[str, str],
) -> BatchOutcome:
    """Put slice after slice; `put` gives the reason of each object that the store refused.

    `failed` are those that never got as far. Where the store is lost after a slice or more were
    acknowledged, raises BatchInterrupted, which names the rest; a store that takes nothing from
    the start says so itself.
    """
    stored: list[str] = []
    refused = dict(failed)
    waiting = [list(slice_) for slice_ in batch]
    for number, slice_ in enumerate(waiting):
        ids = [id_of(item) for item in slice_]
        try:
            faults = put(slice_)
        except StoreDown as error:
            if not stored:
                raise
            rest = tuple(id_of(item) for later in waiting[number:] for item in later)
            raise BatchInterrupted(
                f"{error.detail} {len(stored)} objects of the batch were acknowledged;"
                f" {rest[0]} and {len(rest) - 1} more were not.",
                hint=error.advice,
                stored=tuple(stored),
                unstored=rest,
            ) from error
        refused |= faults
        stored += [i for i in ids if i not in faults]
    return BatchOutcome(tuple(stored), refused)
