"""Where the lines of a PDF are on its pages, packed for storage and cut to a span of the text."""

import base64
import logging
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate, chain, islice, pairwise
from operator import sub
from typing import NamedTuple, overload

log = logging.getLogger(__name__)

MOST_BYTES = 1 << 28
"""The maximum size of unpacked boxes; an imported archive may hold hostile ones."""

_TENTHS = 10
_UNKNOWN = -1
"""The number of words where they are unknown."""

_FIXED = 8
"""Numbers of a packed box before the positions of its words."""


class Box(NamedTuple):
    """A line of a page. Lengths are points from the top left corner of the page as it is shown.

    `text[start:end]` is the line. `words` has the left edge of each word after the first one; None
    if the words do not follow each other from left to right.
    """

    start: int
    end: int
    page: int
    left: float
    top: float
    right: float
    bottom: float
    words: tuple[float, ...] | None = None


class Area(NamedTuple):
    """A rectangle on a page, in points from the top left corner of the page as it is shown."""

    page: int
    left: float
    top: float
    right: float
    bottom: float


class PackedBoxes(Sequence[Box]):
    """Boxes that are unpacked at their first use, which takes seconds for a long PDF.

    Damaged boxes count as no boxes: the text of a file can be read without them.
    """

    def __init__(self, packed: str) -> None:
        self.packed = packed

    @cached_property
    def _boxes(self) -> tuple[Box, ...]:
        try:
            return unpack(self.packed)
        except ValueError:
            log.warning("the boxes of a text's lines are damaged: they are left out")
            return ()

    @overload
    def __getitem__(self, at: int) -> Box: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Box, ...]: ...
    def __getitem__(self, at: int | slice) -> Box | tuple[Box, ...]:
        return self._boxes[at]

    def __iter__(self) -> Iterator[Box]:
        return iter(self._boxes)

    def __len__(self) -> int:
        return len(self._boxes)

    def __eq__(self, other: object) -> bool:
        return self._boxes == (other._boxes if isinstance(other, PackedBoxes) else other)

    def __hash__(self) -> int:
        return hash(self._boxes)


def packed(value: object) -> PackedBoxes:
    """Return boxes of a file or of another process. Raises ValueError if they are no text."""
    if not isinstance(value, str):
        raise ValueError("the boxes of lines are no text")
    return PackedBoxes(value)


def pack(boxes: Iterable[Box]) -> str:
    """Return boxes as text: tenths of points, differences between lines, deflated, base64."""
    if isinstance(boxes, PackedBoxes):
        return boxes.packed
    rows = list(boxes)
    numbers = [len(rows)]
    words: tuple[tuple[float, ...] | None, ...] = ()
    if rows:
        *spans, left, top, right, bottom, words = zip(*rows, strict=True)
        edges = [_tenths(each) for each in (left, top, right, bottom)]
        counts = [_UNKNOWN if each is None else len(each) for each in words]
        for column in (*spans, *edges, counts):
            numbers += [column[0], *map(sub, column[1:], column)]
    numbers += _tenths(chain.from_iterable(each for each in words if each))
    # Level 9 takes six times as long for 2 % less.
    return base64.b64encode(zlib.compress(struct.pack(f"<{len(numbers)}i", *numbers))).decode()


def unpack(packed: str) -> tuple[Box, ...]:
    """Return the boxes of a packed text. Raises ValueError."""
    try:
        content = zlib.decompressobj().decompress(base64.b64decode(packed), MOST_BYTES)
        count, *numbers = struct.unpack(f"<{len(content) // 4}i", content)
        columns = [accumulate(numbers[at * count : (at + 1) * count]) for at in range(_FIXED)]
        words = iter(numbers[_FIXED * count :])
        return tuple(_box(row, words) for row in zip(*columns, strict=True))
    except (zlib.error, struct.error) as error:
        raise ValueError("the boxes of lines are damaged") from error


def _tenths(points: Iterable[float]) -> list[int]:
    return [round(each * _TENTHS) for each in points]


def _box(row: Sequence[int], words: Iterator[int]) -> Box:
    start, end, page, *edges, count = row
    left, top, right, bottom = (edge / _TENTHS for edge in edges)
    after_first = None
    if count != _UNKNOWN:
        after_first = tuple(word / _TENTHS for word in islice(words, count))
    return Box(start, end, page, left, top, right, bottom, after_first)


def areas(boxes: Sequence[Box], text: str, start: int, end: int) -> list[Area]:
    """Return the areas of `text[start:end]`, one for each line.

    A line that the span has in part is cut at the edges of words, and within a word in proportion
    to the characters. A line whose words are unknown is not cut.
    """
    cut = []
    for box in boxes:
        first, last = max(start, box.start), min(end, box.end)
        if not text[first:last].strip():
            continue
        words = text[box.start : box.end].split()
        left, right = box.left, box.right
        if box.words is not None and len(words) == len(box.words) + 1:
            left = left if first == box.start else _edge(box, text, words, first)
            right = right if last == box.end else _edge(box, text, words, last)
        cut.append(Area(box.page, left, box.top, right, box.bottom))
    return cut


def _edge(box: Box, text: str, words: Sequence[str], at: int) -> float:
    """Return the horizontal position of a character of a line."""
    edges = (box.left, *(box.words or ()), box.right)
    offset = box.start
    for word, (left, right) in zip(words, pairwise(edges), strict=True):
        offset = text.index(word, offset)
        if at <= offset + len(word):
            return left + (right - left) * max(0, at - offset) / len(word)
        offset += len(word)
    return box.right
