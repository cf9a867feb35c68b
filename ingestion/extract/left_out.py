"""Warnings that name what a reader leaves out, with numbers."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping


def left_out(counts: Mapping[str, int]) -> tuple[str, ...]:
    """Return the warning for parts by kind and number, such as `left out: pictures (2)`."""
    named = [f"{kind} ({number})" for kind, number in counts.items() if number]
    return (f"left out: {', '.join(named)}",) if named else ()


def parts_left_out(names: Iterable[str], kinds: Mapping[str, re.Pattern[str]]) -> Counter[str]:
    """Count the files of a package by the kinds whose pattern matches the name."""
    counts: Counter[str] = Counter()
    for name in names:
        for kind, pattern in kinds.items():
            if pattern.search(name):
                counts[kind] += 1
    return counts
