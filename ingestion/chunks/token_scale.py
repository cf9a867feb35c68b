"""Converts character offsets of a text to token numbers and back."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """A text with its token offsets (character positions of token starts, ascending)."""

    text: str
    offsets: Sequence[int]

    def index(self, at: int) -> int:
        """Return the index of the first token of the word at `at`.

        The token may start at the white space before the word.
        """
        while at > 0 and self.text[at - 1].isspace():
            at -= 1
        return bisect_left(self.offsets, at)

    def tokens(self, start: int, end: int) -> int:
        """Return the number of tokens in a span."""
        return self.index(end) - self.index(start)

    def at(self, index: int, end: int) -> int:
        """Return the character offset of a token, at most `end`."""
        return min(self.offsets[index], end) if index < len(self.offsets) else end

    def strip(self, start: int, end: int) -> tuple[int, int]:
        """Return the span without outer white space."""
        while start < end and self.text[start].isspace():
            start += 1
        while start < end and self.text[end - 1].isspace():
            end -= 1
        return start, end
