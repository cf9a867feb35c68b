"""A text measured in tokens."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """Characters to tokens and back; `offsets` are where tokens start, never descending."""

    text: str
    offsets: Sequence[int]

    def index(self, at: int) -> int:
        """The first token of the word at `at`, which may start at a blank before it."""
        while at > 0 and self.text[at - 1].isspace():
            at -= 1
        return bisect_left(self.offsets, at)

    def tokens(self, start: int, end: int) -> int:
        """How many tokens stand in a span."""
        return self.index(end) - self.index(start)

    def at(self, index: int, end: int) -> int:
        """Where a token starts, at most `end`."""
        return min(self.offsets[index], end) if index < len(self.offsets) else end

    def strip(self, start: int, end: int) -> tuple[int, int]:
        """A span without outer blanks."""
        while start < end and self.text[start].isspace():
            start += 1
        while start < end and self.text[end - 1].isspace():
            end -= 1
        return start, end
