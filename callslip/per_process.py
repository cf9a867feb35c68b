"""A value that each process builds for itself at its first use."""

import os
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class PerProcess(Generic[T]):
    """Builds a value once per process, for all its threads; a forked child builds its own.

    Inference engines and HTTP clients have threads and sockets that do not survive a fork: a child
    that uses its parent's value hangs. The child keeps a reference to the parent's value, because
    its destructor would wait for those threads as well.

    A value that has neither threads nor sockets can be `forkable`: a forked child uses the value
    of its parent, if there is one, and shares its memory. One that can be built again at any time
    is `droppable`: `drop_unused` forgets it.
    """

    def __init__(
        self, build: Callable[[], T], *, forkable: bool = False, droppable: bool = False
    ) -> None:
        self._build = build
        self._forkable = forkable
        self._droppable = droppable
        self._used = 0.0
        self._values: dict[int, T] = {}
        self._lock = threading.Lock()
        _instances.add(self)

    def get(self) -> T:
        """Return this process's value; if `build` raises an error, every call raises it again."""
        owner = self._owner()
        self._used = time.monotonic()
        try:
            return self._values[owner]
        except KeyError:
            with self._lock:
                if owner not in self._values:
                    self._values[owner] = self._build()
                return self._values[owner]

    def built(self) -> T | None:
        """This process's value, or None if it has not been built."""
        return self._values.get(self._owner())

    def _drop_unused(self, seconds: float) -> None:
        with self._lock:
            if self._droppable and time.monotonic() - self._used > seconds:
                self._values.pop(self._owner(), None)

    def _owner(self) -> int:
        return 0 if self._forkable else os.getpid()

    def _after_fork(self) -> None:
        self._lock = threading.Lock()  # a thread of the parent may have acquired the old one


def drop_unused(seconds: float) -> None:
    """Forget the droppable values of this process that nobody has used for so many seconds.

    A thread that still works with a value keeps it until it has finished.
    """
    for instance in list(_instances):
        instance._drop_unused(seconds)


_instances: "weakref.WeakSet[PerProcess[Any]]" = weakref.WeakSet()


def _renew_locks() -> None:
    for instance in _instances:
        instance._after_fork()


os.register_at_fork(after_in_child=_renew_locks)
