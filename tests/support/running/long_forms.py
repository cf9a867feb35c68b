"""What `make test` takes a part of, and `make test-all` all."""

import os
import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

ALL = os.environ.get("CALLSLIP_TEST_ALL") == "1"

KILL_POINTS = 6
"""Of each sweep over all calls at which a process may be killed."""


def kill_points(calls: int) -> Sequence[int]:
    """At which of so many calls a process is killed: the first, and others, always the same."""
    if ALL or calls <= KILL_POINTS:
        return range(calls)
    return sorted({0, *random.Random(calls).sample(range(1, calls), KILL_POINTS - 1)})


def sample(items: Sequence[T], count: int, seed: str = "") -> Sequence[T]:
    """So many of the items, always the same for a seed; `make test-all` takes all of them."""
    if ALL:
        return items
    return random.Random(f"{seed}{count}").sample(items, min(count, len(items)))
