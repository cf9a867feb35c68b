"""The size of a batch of upserts follows the time and the errors that a store shows."""

from collections.abc import Callable, Iterator

import pytest

from callslip.errors import InvalidRequest, StoreDown
from callslip.stores.batching import FIRST, LEAST, MOST, BatchSize, batches


class Clock:
    """A clock that moves by what each batch takes."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def written(size: BatchSize, clock: Clock, per_second: Callable[[int], float], n: int) -> list[int]:
    """Write n full batches into a store of this speed; the sizes after each."""
    sizes = []
    for _ in range(n):
        objects = size.size
        with size.measured(objects):
            clock.now += objects / per_second(objects)
        sizes.append(size.size)
    return sizes


def test_a_fast_store_gets_large_batches_step_by_step() -> None:
    size = BatchSize(clock := Clock())
    assert size.size == FIRST
    sizes = written(size, clock, lambda _: 5000.0, 8)
    assert sizes == [320, 400, 500, 625, 781, 976, MOST, MOST]


def test_a_slow_store_gets_small_ones_and_never_less_than_the_least() -> None:
    size = BatchSize(clock := Clock())
    assert written(size, clock, lambda _: 40.0, 3) == [LEAST] * 3


def test_a_store_between_them_gets_what_it_writes_in_a_second() -> None:
    size = BatchSize(clock := Clock())
    assert written(size, clock, lambda _: 450.0, 6)[-3:] == [450] * 3


def test_a_store_that_chokes_on_large_batches_is_written_in_smaller_ones() -> None:
    size = BatchSize(clock := Clock())
    sizes = written(size, clock, lambda n: 4000.0 if n < 600 else 150.0, 40)
    assert max(sizes) < 800
    assert min(sizes) >= LEAST


def test_an_error_halves_the_size_and_a_refused_request_does_not() -> None:
    size = BatchSize(clock := Clock())
    written(size, clock, lambda _: 5000.0, 8)
    with pytest.raises(StoreDown), size.measured(1000):
        raise StoreDown("it did not answer in time")
    assert size.size == MOST // 2
    with pytest.raises(InvalidRequest), size.measured(500):
        raise InvalidRequest("no")
    assert size.size == MOST // 2
    for _ in range(3):
        with pytest.raises(StoreDown), size.measured(1000):
            raise StoreDown("it did not answer in time")
    assert size.size == LEAST


def test_a_batch_that_was_not_full_says_only_that_the_store_is_slow() -> None:
    size = BatchSize(clock := Clock())
    with size.measured(3):
        clock.now += 0.001
    assert size.size == FIRST
    with size.measured(100):
        clock.now += 10
    assert size.size == LEAST


def test_batches_follow_the_size_as_it_changes_and_leave_nothing_out() -> None:
    sizes: Iterator[int] = iter((2, 5, 1, 9))
    cut = list(batches(range(10), lambda: next(sizes)))
    assert [len(some) for some in cut] == [2, 5, 1, 2]
    assert [i for some in cut for i in some] == list(range(10))
    assert list(batches([], lambda: 1)) == []
