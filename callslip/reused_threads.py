"""Threads for calls that may not return in time. Each is used again: to start one takes .1 ms."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from contextvars import copy_context
from queue import SimpleQueue
from typing import TypeVar

T = TypeVar("T")

_Call = Callable[[], object]


class ReusedThreads:
    """As many threads as there are calls at the same time. Create it after the fork.

    A call that never returns keeps its thread, and no other call waits for it. The threads end with
    the process.
    """

    def __init__(self) -> None:
        self._idle: list[SimpleQueue[_Call]] = []

    def submit(self, act: Callable[[], T]) -> Future[T]:
        """Call `act` in a thread, with the context variables of the caller.

        The caller may set an error as the result: then that of `act` is dropped.
        """
        future: Future[T] = Future()
        run = copy_context().run

        def call() -> None:
            run(_settle, future, act)

        try:
            calls = self._idle.pop()
        except IndexError:
            calls = SimpleQueue()
            threading.Thread(target=self._work, args=(calls,), daemon=True).start()
        calls.put(call)
        return future

    def _work(self, calls: SimpleQueue[_Call]) -> None:
        while True:
            calls.get()()
            self._idle.append(calls)


def _settle(future: Future[T], act: Callable[[], T]) -> None:
    """Set the result of the call, unless its caller has set another one."""
    try:
        result = act()
    except BaseException as error:  # the caller raises it
        with suppress(InvalidStateError):
            future.set_exception(error)
    else:
        with suppress(InvalidStateError):
            future.set_result(result)
