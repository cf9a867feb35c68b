"""Documents are refused while those that wait are too much work, by the pace of the machine."""

from itertools import count

import pytest

from callslip.config.sections.ingestion import IngestSettings
from callslip.errors import BacklogFull
from callslip.stores.ledger import FairQueue, Pace, Work
from callslip.tasks.shared.backlog import LEAST, Backlog


class Queue(FairQueue):
    """A fair queue with this work and this pace; counts how often it was read."""

    def __init__(self, work: dict[str, Work], pace: Pace | None) -> None:
        self.work, self.measured, self.reads = work, pace, 0

    def waiting(self) -> dict[str, Work]:
        self.reads += 1
        return self.work

    def pace(self) -> Pace | None:
        return self.measured


def backlog(documents: int, size: int, pace: Pace | None, **settings: int) -> Backlog:
    """A backlog in which these documents and bytes wait, and each reading takes a second."""
    queue = Queue({"main/a": Work(documents, size)}, pace)
    return Backlog(IngestSettings(**settings), queue, clock=map(float, count()).__next__)


def is_full(waiting: Backlog, tenant_queue: str | None = None) -> bool:
    try:
        waiting.check() if tenant_queue is None else waiting.check_of(tenant_queue)
    except BacklogFull:
        return True
    return False


@pytest.mark.parametrize("per_second", [0.1, 1.0, 7.0])
def test_less_than_an_hour_of_work_may_wait_at_any_pace(per_second: float) -> None:
    pace = Pace(per_second, 1000 * per_second)
    half, most = round(1800 * per_second), round(2700 * per_second)
    assert not is_full(backlog(half - 1, 0, pace), "main/a")
    assert is_full(backlog(half, 0, pace), "main/a")
    assert not is_full(backlog(half, 0, pace), "main/b"), "another tenant has room"
    assert not is_full(backlog(most - 1, 0, pace))
    assert is_full(backlog(most, 0, pace))


def test_documents_that_are_larger_than_those_before_count_by_their_bytes() -> None:
    pace = Pace(documents=5, size=5000)
    assert not is_full(backlog(100, 100 * 1000, pace))
    assert is_full(backlog(100, 100 * 1_000_000, pace))


def test_a_few_documents_may_always_wait() -> None:
    assert not is_full(backlog(LEAST - 1, 10**9, Pace(0.001, 1)))
    assert is_full(backlog(LEAST, 10**9, Pace(0.001, 1)))


def test_without_a_measured_pace_little_may_wait() -> None:
    assert not is_full(backlog(100, 10**9, None))
    assert is_full(backlog(150, 0, None))


def test_the_numbers_of_the_settings_are_limits_too() -> None:
    fast = Pace(1000, 10**6)
    assert is_full(backlog(40, 0, fast, max_backlog=40))
    assert not is_full(backlog(39, 0, fast, max_backlog=40))
    assert is_full(backlog(40, 0, fast, max_backlog_per_tenant=40), "main/a")
    assert not is_full(backlog(40, 0, fast, max_backlog_per_tenant=40))


@pytest.mark.parametrize(("per_second", "seconds"), [(30.0, 5.0), (2.0, 8.0), (0.01, 60.0)])
def test_clients_send_again_after_some_documents_have_been_ingested(
    per_second: float, seconds: float
) -> None:
    with pytest.raises(BacklogFull) as caught:
        backlog(10**6, 0, Pace(per_second, 1)).check()
    assert caught.value.retry_after == seconds


def test_what_was_read_is_used_for_a_while_and_counts_what_this_process_adds() -> None:
    queue = Queue({}, Pace(1, 1000))
    now = iter([0.0, 0.5, 1.0, 10.0, 10.6, 10.7]).__next__
    waiting = Backlog(IngestSettings(max_backlog=2), queue, clock=now)
    waiting.check()
    for _ in range(2):
        waiting.add("main/a", 100)
    assert is_full(waiting)
    assert queue.reads == 1
    assert is_full(waiting), "10 s is within 20 times the half second that reading took"
    waiting.check()
    assert queue.reads == 2


def test_what_was_read_quickly_is_used_for_a_moment() -> None:
    queue = Queue({}, Pace(1, 1000))
    now = iter([0.0, 0.001, 0.15, 0.3, 0.301]).__next__
    waiting = Backlog(IngestSettings(), queue, clock=now)
    waiting.check()
    waiting.check()
    assert queue.reads == 1
    waiting.check()
    assert queue.reads == 2
