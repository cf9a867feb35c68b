"""What `make test` takes a part of, and `make test-all` all."""

import os
import random
import shutil
import subprocess
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar
from zlib import crc32

import pytest

T = TypeVar("T")

ALL = os.environ.get("CALLSLIP_TEST_ALL") == "1"

KILL_POINTS = 6
"""Of each sweep over all calls at which a process may be killed."""

SLOW = os.environ.get("CALLSLIP_TEST_SLOW") == "1"
"""Whether the judged sets are searched whole."""

PARTS = 6
"""`make test` runs one of so many parts of the tests with the mark `long`."""

EVEN = 2813
"""With this start of the check sums of their names, the parts of 2026-11-28 take equally long."""


def part_of(config: pytest.Config) -> int | None:
    """The part of the long tests that this run has, from 1; None if it has all of them.

    A run of named tests has all. Commits that follow each other have the parts in turns; where git
    cannot count the commits, it is always the first part.
    """
    option = config.option
    if ALL or SLOW or config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return None
    if option.keyword or option.markexpr or getattr(option, "lf", False):
        return None
    number = os.environ.get("CALLSLIP_TEST_PART")
    if number:
        if number not in map(str, range(1, PARTS + 1)):
            raise pytest.UsageError(f"CALLSLIP_TEST_PART is 1 to {PARTS}, not {number!r}")
        return int(number)
    return _commits(config.rootpath) % PARTS + 1


def explained(part: int) -> str:
    """One line about the part that a run has."""
    return (
        f"long tests: part {part} of {PARTS}, the next commit has the next one;"
        f" `make test PART={part}` repeats it, `make test-all` runs all"
    )


def without_other_parts(items: list[pytest.Item], part: int) -> list[pytest.Item]:
    """Remove the long tests of other parts; return the removed ones."""
    others = {
        item
        for item in items
        if item.get_closest_marker("long") and crc32(item.nodeid.encode(), EVEN) % PARTS != part - 1
    }
    items[:] = [item for item in items if item not in others]
    return list(others)


def _commits(folder: Path) -> int:
    """The number of commits up to this one; 0 where git does not have them all."""
    git = shutil.which("git")
    if git is None:
        return 0
    run = partial(subprocess.run, cwd=folder, capture_output=True, text=True, check=False)
    if run([git, "rev-parse", "--is-shallow-repository"]).stdout.strip() != "false":
        return 0
    return int(run([git, "rev-list", "--count", "HEAD"]).stdout or 0)


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
