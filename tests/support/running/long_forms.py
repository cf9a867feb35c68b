"""What `make test` takes a part of, and `make test-all` all."""

import os
import random
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import pytest

T = TypeVar("T")

ALL = os.environ.get("CALLSLIP_TEST_ALL") == "1"

KILL_POINTS = 6
"""Of each sweep over all calls at which a process may be killed."""

PARTS = 4
"""`make test` runs one of so many parts of the tests with the mark `long`."""


def part_of(config: pytest.Config) -> int | None:
    """The part of the long tests that this run has, from 1; None if it has all of them.

    A run of named tests has all. Commits that follow each other have the parts in turns.
    """
    option = config.option
    if ALL or config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return None
    if option.keyword or option.markexpr:
        return None
    number = os.environ.get("CALLSLIP_TEST_PART")
    if number:
        if number not in map(str, range(1, PARTS + 1)):
            raise pytest.UsageError(f"CALLSLIP_TEST_PART is 1 to {PARTS}, not {number!r}")
        return int(number)
    return _commits(config.rootpath) % PARTS + 1


def without_other_parts(items: list[pytest.Item], part: int) -> list[pytest.Item]:
    """Remove the long tests of other parts; return the removed ones."""
    long = [item for item in items if item.get_closest_marker("long")]
    others = {item for number, item in enumerate(long) if number % PARTS != part - 1}
    items[:] = [item for item in items if item not in others]
    return list(others)


def _commits(folder: Path) -> int:
    """The number of commits up to this one; 0 outside a clone."""
    command = ["git", "-C", str(folder), "rev-list", "--count", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return 0
    return int(done.stdout) if done.returncode == 0 else 0


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
