"""Grouping texts into batches for a network."""

from collections.abc import Iterator, Sequence
from itertools import groupby


def by_length(lengths: Sequence[int], most_tokens: int) -> Iterator[list[int]]:
    """Iterate over batches of row indices, longest rows first, so that batches need little padding.

    `lengths` are in tokens. A batch has at most `most_tokens` after padding, or is a single row.
    """
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    while order:
        size = max(1, most_tokens // max(1, lengths[order[0]]))
        yield order[:size]
        order = order[size:]


def of_one_length(lengths: Sequence[int], most_tokens: int) -> Iterator[list[int]]:
    """Iterate over batches of row indices, longest rows first, whose rows have the same length.

    `lengths` are in tokens. A batch has at most `most_tokens`, or is a single row.
    """
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    for length, rows in groupby(order, key=lambda i: lengths[i]):
        same, size = list(rows), max(1, most_tokens // max(1, length))
        yield from (same[start : start + size] for start in range(0, len(same), size))
