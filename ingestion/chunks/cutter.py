"""Cuts a stretch of text into chunks, between paragraphs, sentences, rows or words."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from callslip.config.settings import ChunkingSettings
from callslip.ingestion.chunks.boundaries import (
    LINE,
    PARAGRAPH,
    WORD,
    first_after,
    last_before,
    sentence_end,
)
from callslip.ingestion.chunks.previous_cuts import NEVER_CUT, PreviousCuts
from callslip.ingestion.chunks.token_scale import Scale
from callslip.ingestion.values import Block
from callslip.languages import DEFAULT, Codes

SHORTEST_CUT = 0.6
"""The minimum share of the target length of a chunk that is not the last one."""

LONGEST_HEADER = 0.25
"""The maximum share of the target length for a table header; a longer header is not repeated."""

_ROWS = (LINE, WORD)
_CODE = (PARAGRAPH, LINE, WORD)


class Cutter:
    """Cuts the sections of one text; reuses the previous version's cuts if possible.

    A block that fits a chunk is not cut.
    """

    def __init__(
        self,
        scale: Scale,
        settings: ChunkingSettings,
        blocks: Sequence[Block],
        previous: PreviousCuts = NEVER_CUT,
        codes: Codes = DEFAULT,
    ) -> None:
        self._scale = scale
        self._text = (PARAGRAPH, sentence_end(codes), LINE, WORD)
        self._previous = previous
        self._max = settings.max_tokens
        self._target = settings.target_tokens
        self._overlap = min(settings.overlap_tokens, self._target // 2)
        self._blocks = sorted(blocks, key=lambda block: block.start)
        self._starts = [block.start for block in self._blocks]

    def spans(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the spans of the chunks of `start:end`, without outer white space."""
        scale = self._scale
        start, end = scale.strip(start, end)
        last = scale.index(end)
        while start < end:
            first = scale.index(start)
            left = last - first
            header = scale.tokens(*self.header(start))
            if left + header <= self._max:
                yield start, end
                return
            # Two chunks of similar length are better than a full chunk and a very short one.
            length = min(self._target - header, (left + self._overlap + 1) // 2)
            most = self._max - header
            cut = self._previous_cut(start, first, (length, most), end) if self._previous else None
            if cut is None:
                cut = self._cut(start, first, self._aim(first, length, most, end), most, end)
            yield scale.strip(start, cut)
            start = scale.strip(max(self._resume(first, cut), start + 1), end)[0]

    def header(self, start: int) -> tuple[int, int]:
        """Return the span of the header of the table around `start`; (0, 0) if there is none."""
        block = self._around(start)
        if block is None or block.kind != "table" or not block.start < block.header <= start:
            return 0, 0
        long = self._scale.tokens(block.start, block.header) > LONGEST_HEADER * self._target
        return (0, 0) if long else (block.start, block.header)

    def _previous_cut(
        self, start: int, first: int, lengths: tuple[int, int], end: int
    ) -> int | None:
        """Return the previous version's cut, or None if this chunk or the rest is too short."""
        scale, (length, most) = self._scale, lengths
        shortest = int(length * SHORTEST_CUT)
        earliest_end = max(scale.at(first + shortest, end), start + 1)
        limit = scale.at(first + most, end)
        cut = self._previous.again(scale.text, start, limit)
        if cut is None or cut < earliest_end:
            cut = self._previous.first(scale.text, earliest_end, limit)
        if cut is None or scale.tokens(cut, end) + self._overlap < shortest:
            return None
        return cut if self._may_cut(cut) else None

    def _may_cut(self, cut: int) -> bool:
        """Whether `cut` is outside of blocks, or between two lines of a block that is too long."""
        block = self._around(cut)
        if block is None:
            return True
        gap = self._scale.text[self._scale.strip(block.start, cut)[1] : cut]
        return not self._fits(block) and "\n" in gap

    def _aim(self, first: int, length: int, most: int, end: int) -> tuple[int, int, int]:
        """Return the minimum, preferred and maximum length of a chunk in tokens.

        If a cut of the previous version is two chunks away, the lengths make the second chunk end
        at that cut.
        """
        if self._previous:
            scale = self._scale
            near, far = scale.at(first + most, end), scale.at(first + 2 * self._target, end)
            cut = self._previous.first(scale.text, near, far)
            if cut is not None:
                away = scale.index(cut) - first
                length = min(length, (away + self._overlap + 1) // 2)
                shortest = max(int(length * SHORTEST_CUT), away + self._overlap - self._max)
                longest = max(length, away - int(self._target * SHORTEST_CUT))
                return min(shortest, length), length, min(longest, most)
        return int(length * SHORTEST_CUT), length, most

    def _cut(
        self, start: int, first: int, lengths: tuple[int, int, int], most: int, end: int
    ) -> int:
        """Return the end of a chunk: the last suitable boundary, or the edge of a block."""
        scale = self._scale
        earliest_end, goal, limit = (max(scale.at(first + n, end), start + 1) for n in lengths)
        cut = self._boundary(self._text, earliest_end, goal, limit)
        block = self._around(cut)
        if block is None:
            return cut
        if scale.index(block.end) <= first + most:
            return block.end
        if self._fits(block) and block.start > start:
            return block.start
        inner = max(earliest_end, block.start + 1)
        kind = _ROWS if block.kind == "table" else _CODE
        return self._boundary(kind, inner, max(goal, inner), limit)

    def _boundary(
        self, kinds: Sequence[re.Pattern[str]], earliest_end: int, goal: int, limit: int
    ) -> int:
        """Return the last boundary before the goal, else the next one, of the first kind found."""
        for boundary in kinds:
            cut = last_before(boundary, self._scale.text, earliest_end, goal)
            if cut is None:
                cut = first_after(boundary, self._scale.text, goal, limit)
            if cut is not None:
                return cut
        # The cut is within a word. Its halves may have more tokens than the word: not `limit`.
        return goal

    def _resume(self, first: int, cut: int) -> int:
        """Return the start of the next chunk: a boundary at most the overlap before the cut.

        Rows and code are not repeated.
        """
        if not self._overlap or self._around(cut):
            return cut
        scale = self._scale
        earliest = scale.at(max(first, scale.index(cut) - self._overlap), cut)
        start = earliest
        for boundary in self._text:
            boundary_end = first_after(boundary, scale.text, earliest, cut)
            if boundary_end is not None:
                start = boundary_end
                break
        block = self._around(start)
        return start if block is None else min(block.end, cut)

    def _fits(self, block: Block) -> bool:
        return self._scale.tokens(block.start, block.end) <= self._max

    def _around(self, at: int) -> Block | None:
        """Return the block that contains `at`, but not at an edge; None if there is none."""
        boundary_end = bisect_right(self._starts, at - 1) - 1
        block = self._blocks[boundary_end] if boundary_end >= 0 else None
        return block if block and block.start < at < block.end else None
