"""Writes a batch in slices, so that the acknowledged slices are known if the store is lost."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from callslip.errors import BatchInterrupted, StoreDown
from callslip.stores.records import BatchOutcome

T = TypeVar("T")


def slices(
    items: Iterable[T], *, count: int, size: int, size_of: Callable[[T], int]
) -> Iterator[list[T]]:
    """Cut a batch by a server's limits on objects and bytes per request; no slice is empty."""
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
    """Write slice after slice; `put` returns the reason for each object that the store refused.

    `failed` has the objects that were refused before. Raises BatchInterrupted, which names the
    remaining objects, if the store is lost after it has stored at least one object; before that, it
    raises the store's own StoreDown.
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
