"""A value that each process builds for itself, when it first needs it."""

import os
import threading
import weakref
from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class PerProcess(Generic[T]):
    """Builds once per process, whichever thread asks first; a forked child builds its own.

    Inference engines and HTTP clients keep threads and sockets that a fork does not carry over: a
    child that uses its parent's hangs. The parent's value is kept, because its destructor would
    wait for those threads as well.
    """

    def __init__(self, build: Callable[[], T]) -> None:
        self._build = build
        self._values: dict[int, T] = {}
        self._lock = threading.Lock()
        _instances.add(self)

    def get(self) -> T:
        """This process's value; what building raises is raised again at every call."""
        pid = os.getpid()
        if pid not in self._values:
            with self._lock:
                if pid not in self._values:
                    self._values[pid] = self._build()
        return self._values[pid]

    def _after_fork(self) -> None:
        self._lock = threading.Lock()  # a thread of the parent may have held the old one


_instances: "weakref.WeakSet[PerProcess[Any]]" = weakref.WeakSet()


def _renew_locks() -> None:
    for instance in _instances:
        instance._after_fork()


os.register_at_fork(after_in_child=_renew_locks)
