"""The cuts of the previous version, so that an edit moves only the cuts next to it.

The cutter counts tokens from the start of a section, so one more sentence would move every later
cut, and every later chunk would be embedded again. In text that also occurs in the previous
version, the cuts are reused as long as the chunks stay within their length limits.
"""

import re
from collections.abc import Sequence

from callslip.ingestion.values import Chunk

AROUND = 24
"""The number of characters on either side of a cut that identify the cut."""

_GAP = re.compile(r"\s+|(?<=[。！？])")


class PreviousCuts:
    """The chunks of the previous version; empty if there is no previous version."""

    def __init__(self, text: str = "", chunks: Sequence[Chunk] = ()) -> None:
        self._text = text
        self._cuts = {_around(text, c.end) for c in chunks}
        self._begun: dict[str, list[Chunk]] = {}
        for chunk in sorted(chunks, key=lambda c: c.start - c.end):
            self._begun.setdefault(text[chunk.start : chunk.start + AROUND], []).append(chunk)

    def __bool__(self) -> bool:
        return bool(self._cuts)

    def again(self, text: str, start: int, limit: int) -> int | None:
        """Return the end of the longest previous chunk that starts at `start`; at most `limit`."""
        for chunk in self._begun.get(text[start : start + AROUND], ()):
            end = start + chunk.end - chunk.start
            if end <= limit and text[start:end] == self._text[chunk.start : chunk.end]:
                return _after_gap(text, end, limit)
        return None

    def first(self, text: str, start: int, end: int) -> int | None:
        """Return the first cut of the previous version in `start:end`, or None."""
        for gap in _GAP.finditer(text, start, end):
            if _around(text, gap.start()) in self._cuts:
                return gap.end()
        return None

    def cut_at(self, text: str, at: int) -> bool:
        """Whether the previous version was cut at `at`; white space before `at` is skipped."""
        while at > 0 and text[at - 1].isspace():
            at -= 1
        return _around(text, at) in self._cuts


NEVER_CUT = PreviousCuts()


def _around(text: str, at: int) -> str:
    return text[max(0, at - AROUND) : at + AROUND]


def _after_gap(text: str, at: int, limit: int) -> int | None:
    """Return the end of the white space at `at`; None within a word."""
    gap = _GAP.match(text, at, limit)
    return gap.end() if gap else None
