"""From PDF coordinates to those of the page as it is shown: points from its top left corner."""

from collections.abc import Iterable, Sequence
from operator import sub

import pypdfium2 as pdfium

Edges = tuple[float, float, float, float]
"""Left, top, right and bottom, in points from the top left corner of the shown page."""

NOWHERE: Edges = (0.0, 0.0, 0.0, 0.0)


class Shown:
    """How a page is shown: its visible part, turned by a multiple of a quarter.

    `turn` is the direction, in quarter turns, of text that is horizontal on the shown page. `left`
    is the edge in PDF coordinates that is the left one of the shown page: its number in `box`.
    """

    def __init__(self, page: pdfium.PdfPage) -> None:
        self._left, self._bottom, self._right, self._top = page.get_bbox()
        self._width, self._height = self._right - self._left, self._top - self._bottom
        self.turn = page.get_rotation() // 90 % 4
        self.left = (0, 3, 2, 1)[self.turn]

    def box(self, left: float, top: float, right: float, bottom: float) -> Edges:
        """Return the box of the shown page for one in PDF coordinates, whose origin is below."""
        west, east = left - self._left, right - self._left
        south, north = bottom - self._bottom, top - self._bottom
        width, height = self._width, self._height
        if self.turn == 0:
            return west, height - north, east, height - south
        if self.turn == 1:
            return south, west, north, east
        if self.turn == 2:
            return width - east, south, width - west, north
        return height - north, width - east, height - south, width - west

    def around(self, boxes: Sequence[Edges]) -> tuple[Edges, float]:
        """Return the box around boxes in PDF coordinates, and the greatest height of these boxes.

        Both are of the shown page.
        """
        lefts, tops, rights, bottoms = zip(*boxes, strict=True)
        low, high = (bottoms, tops) if self.turn % 2 == 0 else (lefts, rights)
        around = self.box(min(lefts), max(tops), max(rights), min(bottoms))
        return around, max(map(sub, high, low))

    def lefts(self, edges: Iterable[float]) -> list[float]:
        """Return the left edges of boxes of the shown page for the edges `left` of these boxes."""
        if self.turn == 0:
            return [edge - self._left for edge in edges]
        if self.turn == 1:
            return [edge - self._bottom for edge in edges]
        if self.turn == 2:
            return [self._width - (edge - self._left) for edge in edges]
        return [self._height - (edge - self._bottom) for edge in edges]


def union(one: Edges, other: Edges) -> Edges:
    """Return the smallest box around two boxes."""
    return (
        min(one[0], other[0]),
        min(one[1], other[1]),
        max(one[2], other[2]),
        max(one[3], other[3]),
    )
