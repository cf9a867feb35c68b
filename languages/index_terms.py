"""Rules of index terms that all languages share."""

from collections.abc import Iterator

MAX_TERM = 64
"""The most characters of a term; a longer word is cut, so a line of base64 is one short term."""


def pairs(text: str) -> Iterator[str]:
    """Iterate over the pairs of consecutive characters."""
    return (text[i : i + 2] for i in range(len(text) - 1))
