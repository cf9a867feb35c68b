"""When the processes of an idle pool are replaced, by a clock of the test's own."""

from callslip.workers.pool.idle import Idleness


def test_a_pool_that_has_worked_is_renewed_once_after_the_idle_time() -> None:
    idleness = Idleness(10.0)
    assert not idleness.is_over(0.0, 1, busy=True)
    assert not idleness.is_over(5.0, 1, busy=False)
    assert not idleness.is_over(9.9, 1, busy=False)
    assert idleness.is_over(10.0, 1, busy=False)
    assert not idleness.is_over(99.0, 1, busy=False)


def test_a_pool_that_has_not_worked_is_left_alone() -> None:
    idleness = Idleness(10.0)
    assert not idleness.is_over(0.0, 0, busy=False)
    assert not idleness.is_over(99.0, 0, busy=False)


def test_a_task_between_two_looks_is_work() -> None:
    idleness = Idleness(10.0)
    idleness.is_over(0.0, 1, busy=False)
    assert not idleness.is_over(9.0, 2, busy=False)
    assert not idleness.is_over(18.0, 2, busy=False)
    assert idleness.is_over(19.0, 2, busy=False)


def test_a_pool_with_a_task_is_never_renewed() -> None:
    idleness = Idleness(10.0)
    assert not idleness.is_over(0.0, 1, busy=True)
    assert not idleness.is_over(36_000.0, 1, busy=True)


def test_zero_means_never() -> None:
    idleness = Idleness(0.0)
    idleness.is_over(0.0, 1, busy=False)
    assert not idleness.is_over(36_000.0, 1, busy=False)
