"""The sizes of batches and of their slices, and what of a batch is stored if the store is lost."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

from callslip.errors import BatchInterrupted, StoreDown, TransientError
from callslip.stores.records import BatchOutcome

T = TypeVar("T")

FIRST, LEAST, MOST = 256, 200, 1000
"""The first, the smallest and the greatest number of objects of a batch that tunes itself."""

GOAL_SECONDS = 1.0
"""The time that a batch should take: the lease of a step is checked between two batches."""

_GROWTH = 1.25
"""The most by which a batch grows, so that one fast answer does not make it four times as large."""


class BatchSize:
    """The number of objects of one upsert into one store, tuned by the last upsert.

    After a batch the size becomes the number of objects that the store writes in GOAL_SECONDS, but
    at least half and at most 1.25 times the size before; a batch that was not full can only reduce
    it. A transient error, such as a time-out, halves the size: multiplicative decrease, as in
    congestion control. The size stays between LEAST and MOST. Threads may share it.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.size = FIRST
        self.on_change: Callable[[int], None] = lambda _: None
        """Called with the size after each batch."""
        self._clock = clock

    @contextmanager
    def measured(self, objects: int) -> Iterator[None]:
        """Measure a batch of this number of objects, which is written within."""
        begun = self._clock()
        try:
            yield
        except TransientError:
            self._set(self.size / 2)
            raise
        seconds = max(self._clock() - begun, 1e-6)
        within_goal = objects / seconds * GOAL_SECONDS
        if objects >= self.size or within_goal < self.size:
            self._set(max(self.size / 2, min(self.size * _GROWTH, within_goal)))

    def _set(self, size: float) -> None:
        self.size = round(max(LEAST, min(MOST, size)))
        self.on_change(self.size)


def batches(items: Sequence[T], size: Callable[[], int]) -> Iterator[Sequence[T]]:
    """Cut items into batches; the size of each is read when it begins."""
    start = 0
    while start < len(items):
        batch = items[start : start + size()]
        yield batch
        start += len(batch)


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
