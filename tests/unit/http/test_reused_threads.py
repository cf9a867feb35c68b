"""A thread is used again once its call has ended, and only then."""

import threading
import time
from contextvars import ContextVar

import pytest

from callslip.reused_threads import ReusedThreads

asked: ContextVar[str] = ContextVar("asked")


def test_a_thread_is_used_again() -> None:
    threads, seen = ReusedThreads(), set[int]()
    for _ in range(20):
        seen.add(threads.submit(threading.get_ident).result())
        time.sleep(0.002)  # it becomes idle just after its result
    assert len(seen) < 5


def test_a_call_that_hangs_delays_no_other() -> None:
    threads, end = ReusedThreads(), threading.Event()
    hangs = threads.submit(end.wait)
    assert threads.submit(lambda: 1).result(5) == 1
    assert not hangs.done()
    end.set()
    assert hangs.result(5)


def test_a_call_has_the_variables_of_its_caller_and_raises_its_error() -> None:
    threads = ReusedThreads()
    for name in ("first", "second"):
        asked.set(name)
        assert threads.submit(asked.get).result(5) == name
    with pytest.raises(ZeroDivisionError):
        threads.submit(lambda: 1 // 0).result(5)


def test_a_result_that_the_caller_has_set_stays() -> None:
    threads, end = ReusedThreads(), threading.Event()
    call = threads.submit(end.wait)
    call.set_exception(TimeoutError())
    end.set()
    assert threads.submit(lambda: 2).result(5) == 2
    with pytest.raises(TimeoutError):
        call.result(5)
