"""When a worker that is alive takes no work, by a clock of the test's own."""

from callslip.workers.pool.stall import IDLE_SECONDS, Stall


def test_an_idle_worker_before_waiting_messages_is_stalled() -> None:
    stall = Stall(2, None)
    assert stall.look(0.0, 0, []) == ""
    assert stall.look(100.0, 3, []) == ""
    assert stall.look(100.0 + IDLE_SECONDS, 3, []) == ""
    assert stall.look(100.1 + IDLE_SECONDS, 3, []).startswith("3 messages wait")


def test_a_worker_that_takes_anything_meanwhile_is_not() -> None:
    stall = Stall(2, None)
    stall.look(0.0, 3, [])
    assert stall.look(5.0, 2, ["task"]) == ""
    assert stall.look(12.0, 2, []) == ""
    assert stall.look(14.0, 0, []) == ""
    assert stall.look(21.0, 1, []) == ""


def test_a_pool_is_stalled_when_every_task_takes_longer_than_any_may() -> None:
    stall = Stall(2, 10.0)
    stall.look(0.0, 5, ["a"])
    stall.look(5.0, 5, ["a", "b"])
    assert stall.look(15.0, 5, ["a", "b"]) == ""
    assert stall.look(15.1, 5, ["a", "b"]) == "all 2 tasks run for more than 10 s"
    assert stall.look(16.0, 5, ["b", "c"]) == ""


def test_a_long_step_of_ingestion_is_no_stall() -> None:
    stall = Stall(2, None)
    stall.look(0.0, 500, ["a", "b"])
    assert stall.look(36_000.0, 500, ["a", "b"]) == ""
