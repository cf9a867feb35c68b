"""From PDF coordinates to those of the page as it is shown: points from its top left corner."""

import pypdfium2 as pdfium

Edges = tuple[float, float, float, float]
"""Left, top, right and bottom, in points from the top left corner of the shown page."""

NOWHERE: Edges = (0.0, 0.0, 0.0, 0.0)


class Shown:
    """How a page is shown: its visible part, turned by a multiple of a quarter.

    `turn` is the direction, in quarter turns, of text that is horizontal on the shown page.
    """

    def __init__(self, page: pdfium.PdfPage) -> None:
        self._left, self._bottom, self._right, self._top = page.get_bbox()
        self.turn = page.get_rotation() // 90 % 4

    def box(self, left: float, top: float, right: float, bottom: float) -> Edges:
        """Return the box of the shown page for one in PDF coordinates, whose origin is below."""
        west, east = left - self._left, right - self._left
        south, north = bottom - self._bottom, top - self._bottom
        width, height = self._right - self._left, self._top - self._bottom
        if self.turn == 0:
            return west, height - north, east, height - south
        if self.turn == 1:
            return south, west, north, east
        if self.turn == 2:
            return width - east, south, width - west, north
        return height - north, width - east, height - south, width - west


def union(one: Edges, other: Edges) -> Edges:
    """Return the smallest box around two boxes."""
    lefts, tops, rights, bottoms = zip(one, other, strict=True)
    return min(lefts), min(tops), max(rights), max(bottoms)
