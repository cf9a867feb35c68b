"""Where the version before was cut: an edit moves no cut of a text but those beside it.

Cutting counts tokens from the start of a section, so that one more sentence would move every cut
behind it, and each chunk would be embedded anew. Where a text is known from the version before, its
cuts are kept as far as chunks stay within their bounds.
"""

import re
from collections.abc import Sequence

from ingestion.parts import Chunk

AROUND = 24
"""Characters on either side of a cut by which it is known again."""

_GAP = re.compile(r"\s+|(?<=[。！？])")


class FormerCuts:
    """The chunks that a text was cut into before; none where there was no version before."""

    def __init__(self, text: str = "", chunks: Sequence[Chunk] = ()) -> None:
        self._text = text
        self._cuts = {_around(text, c.end) for c in chunks}
        self._begun: dict[str, list[Chunk]] = {}
        for chunk in sorted(chunks, key=lambda c: c.start - c.end):
            self._begun.setdefault(text[chunk.start : chunk.start + AROUND], []).append(chunk)

    def __bool__(self) -> bool:
        return bool(self._cuts)

    def again(self, text: str, start: int, limit: int) -> int | None:
        """Where the longest chunk ends that begins at `start` as before; at most `limit`."""
        for chunk in self._begun.get(text[start : start + AROUND], ()):
            end = start + chunk.end - chunk.start
            if end <= limit and text[start:end] == self._text[chunk.start : chunk.end]:
                return _after_gap(text, end, limit)
        return None

    def first(self, text: str, start: int, end: int) -> int | None:
        """The first place in `start:end` at which the text was cut before."""
        for gap in _GAP.finditer(text, start, end):
            if _around(text, gap.start()) in self._cuts:
                return gap.end()
        return None

    def cut_at(self, text: str, at: int) -> bool:
        """Whether the text was cut at this place before, which may have blanks before it."""
        while at > 0 and text[at - 1].isspace():
            at -= 1
        return _around(text, at) in self._cuts


NEVER_CUT = FormerCuts()


def _around(text: str, at: int) -> str:
    return text[max(0, at - AROUND) : at + AROUND]


def _after_gap(text: str, at: int, limit: int) -> int | None:
    """The end of the blanks at a place; None in the middle of a word."""
    gap = _GAP.match(text, at, limit)
    return gap.end() if gap else None
