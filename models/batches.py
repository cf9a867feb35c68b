"""Which texts a network reads together."""

from collections.abc import Iterator, Sequence


def by_length(lengths: Sequence[int], most_tokens: int) -> Iterator[list[int]]:
    """Indices of rows of these lengths in tokens, longest first, so that a batch pads little.

    A padded batch has at most `most_tokens`, or is a single row.
    """
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    while order:
        size = max(1, most_tokens // max(1, lengths[order[0]]))
        yield order[:size]
        order = order[size:]
