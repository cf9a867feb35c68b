"""Whether the server is about to stop: all its processes know it from one byte that they share."""

import mmap

_shared = mmap.mmap(-1, 1)
"""Made by the master process before its workers, which are forks of it."""


def begin() -> None:
    """From now on /readyz answers 503, so that a load balancer sends requests elsewhere."""
    _shared[0] = 1


def has_begun() -> bool:
    """Whether the server stops soon."""
    return _shared[0] == 1
