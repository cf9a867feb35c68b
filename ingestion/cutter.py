"""Where a stretch of text is cut into chunks: between paragraphs, sentences, rows or words."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from config.settings import ChunkingSettings
from ingestion.boundaries import LINE, PARAGRAPH, SENTENCE, WORD, first_after, last_before
from ingestion.former import NEVER_CUT, FormerCuts
from ingestion.parts import Block
from ingestion.scale import Scale

SHORTEST_CUT = 0.6
"""Share of the target length that a chunk has at least when the text goes on."""

LONGEST_HEADER = 0.25
"""Share of the target length that a table's header may take; a longer one is not repeated."""

_TEXT = (PARAGRAPH, SENTENCE, LINE, WORD)
_ROWS = (LINE, WORD)
_CODE = (PARAGRAPH, LINE, WORD)


class Cutter:
    """Cuts the sections of one text, where it was cut before if it may be.

    Blocks that fit a chunk are kept whole.
    """

    def __init__(
        self,
        scale: Scale,
        settings: ChunkingSettings,
        blocks: Sequence[Block],
        former: FormerCuts = NEVER_CUT,
    ) -> None:
        self._scale = scale
        self._former = former
        self._max = settings.max_tokens
        self._target = settings.target_tokens
        self._overlap = min(settings.overlap_tokens, self._target // 2)
        self._blocks = sorted(blocks, key=lambda block: block.start)
        self._starts = [block.start for block in self._blocks]

    def spans(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """The chunks of one stretch of text, without outer blanks."""
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
            # Two chunks of like length rather than a full one and a crumb.
            length = min(self._target - header, (left + self._overlap + 1) // 2)
            most = self._max - header
            cut = self._kept(start, first, (length, most), end) if self._former else None
            if cut is None:
                cut = self._cut(start, first, self._aim(first, length, most, end), most, end)
            yield scale.strip(start, cut)
            start = scale.strip(max(self._resume(first, cut), start + 1), end)[0]

    def header(self, start: int) -> tuple[int, int]:
        """The span of the header of the table that a chunk would go on with; (0, 0) where none."""
        block = self._around(start)
        if block is None or block.kind != "table" or not block.start < block.header <= start:
            return 0, 0
        long = self._scale.tokens(block.start, block.header) > LONGEST_HEADER * self._target
        return (0, 0) if long else (block.start, block.header)

    def _kept(self, start: int, first: int, lengths: tuple[int, int], end: int) -> int | None:
        """Where it was cut before, unless this chunk or the rest behind it would be a crumb."""
        scale, (length, most) = self._scale, lengths
        shortest = int(length * SHORTEST_CUT)
        floor = max(scale.at(first + shortest, end), start + 1)
        limit = scale.at(first + most, end)
        cut = self._former.again(scale.text, start, limit)
        if cut is None or cut < floor:
            cut = self._former.first(scale.text, floor, limit)
        if cut is None or scale.tokens(cut, end) + self._overlap < shortest:
            return None
        return cut if self._may_cut(cut) else None

    def _may_cut(self, cut: int) -> bool:
        """Outside of blocks, or between the lines of one that is too long for a chunk."""
        block = self._around(cut)
        if block is None:
            return True
        gap = self._scale.text[self._scale.strip(block.start, cut)[1] : cut]
        return not self._fits(block) and "\n" in gap

    def _aim(self, first: int, length: int, most: int, end: int) -> tuple[int, int, int]:
        """The shortest that a chunk may be, where it is to be closed, and the longest; in tokens.

        So that two chunks end where it was cut before, if that is as far away as two.
        """
        if self._former:
            scale = self._scale
            near, far = scale.at(first + most, end), scale.at(first + 2 * self._target, end)
            cut = self._former.first(scale.text, near, far)
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
        """Where to end: the last boundary that makes it long enough, or the edge of a block."""
        scale = self._scale
        floor, goal, limit = (max(scale.at(first + n, end), start + 1) for n in lengths)
        cut = self._boundary(_TEXT, floor, goal, limit)
        block = self._around(cut)
        if block is None:
            return cut
        if scale.index(block.end) <= first + most:
            return block.end
        if self._fits(block) and block.start > start:
            return block.start
        inner = max(floor, block.start + 1)
        kind = _ROWS if block.kind == "table" else _CODE
        return self._boundary(kind, inner, max(goal, inner), limit)

    def _boundary(self, kinds: Sequence[re.Pattern[str]], floor: int, goal: int, limit: int) -> int:
        """The last boundary up to the goal, of the first kind there is; else the next one."""
        for boundary in kinds:
            cut = last_before(boundary, self._scale.text, floor, goal)
            if cut is None:
                cut = first_after(boundary, self._scale.text, goal, limit)
            if cut is not None:
                return cut
        # In the middle of a word: its halves may have some more tokens than it had, hence not limit
        return goal

    def _resume(self, first: int, cut: int) -> int:
        """Where the next chunk starts: at most the overlap before the cut, at a boundary.

        Rows and code are not repeated.
        """
        if not self._overlap or self._around(cut):
            return cut
        scale = self._scale
        earliest = scale.at(max(first, scale.index(cut) - self._overlap), cut)
        start = earliest
        for boundary in _TEXT:
            found = first_after(boundary, scale.text, earliest, cut)
            if found is not None:
                start = found
                break
        block = self._around(start)
        return start if block is None else min(block.end, cut)

    def _fits(self, block: Block) -> bool:
        return self._scale.tokens(block.start, block.end) <= self._max

    def _around(self, at: int) -> Block | None:
        """The block that `at` lies inside of, not at an edge."""
        found = bisect_right(self._starts, at - 1) - 1
        block = self._blocks[found] if found >= 0 else None
        return block if block and block.start < at < block.end else None
