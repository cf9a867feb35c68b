"""Grouping texts into batches for a network."""

from collections.abc import Iterator, Sequence


def by_length(lengths: Sequence[int], most_tokens: int) -> Iterator[list[int]]:
    """Iterate over batches of row indices, longest rows first, so that batches need little padding.

    `lengths` are in tokens. A batch has at most `most_tokens` after padding, or is a single row.
    """
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    while order:
        size = max(1, most_tokens // max(1, lengths[order[0]]))
        yield order[:size]
        order = order[size:]
