"""The lines of a PDF page: their text, type and position, by PDFium."""

import ctypes
import math
import re
from collections.abc import Iterator
from itertools import accumulate, zip_longest

import pypdfium2 as pdfium
import pypdfium2.raw as raw

from callslip.ingestion.extract.readers.pdf.calls import unchecked
from callslip.ingestion.extract.readers.pdf.geometry import NOWHERE, Edges, Shown, union
from callslip.ingestion.extract.readers.pdf.outline import Line, LinePart

_SEPARATOR = re.compile("(\r\n|\ufffe)")
"""PDFium ends a line with CRLF, or with U+FFFE in place of the hyphen of a divided word."""

_SPACE = re.compile(r"\s+(?=\S)")
_WORD = re.compile(r"\S+")

ROW = 1.6
"""A line that is higher than its highest part by this factor is drawn in several rows."""

HOLE = 1.5
"""Words that are farther apart than this multiple of their height have a hole between them."""

_BOLD_WEIGHT = 600

_index = unchecked(raw.FPDFText_GetCharIndexFromTextIndex)
_matrix = unchecked(raw.FPDFText_GetMatrix)
_font_size = unchecked(raw.FPDFText_GetFontSize)
_weight = unchecked(raw.FPDFText_GetFontWeight)
_rectangles = unchecked(raw.FPDFText_CountRects)
_rectangle = unchecked(raw.FPDFText_GetRect)
_char_box = unchecked(raw.FPDFText_GetCharBox)
_origin = unchecked(raw.FPDFText_GetCharOrigin)
_unmapped = unchecked(raw.FPDFText_HasUnicodeMapError)


def lines_of(page: pdfium.PdfPage, shown: Shown) -> Iterator[Line]:
    """Yield the lines of a page.

    Calls PDFium eight to eleven times per line and once per word, not per character, because the
    calls take most of the time.
    """
    textpage = page.get_textpage()
    try:
        text = textpage.get_text_range()
        probe = _Probe(textpage, len(text), shown)
        start = 0
        pieces = _SEPARATOR.split(text)
        for line, separator in zip_longest(pieces[::2], pieces[1::2], fillvalue=""):
            inner = line.strip()
            if inner:
                first = start + line.index(inner[0])
                yield probe.line(inner, first, first + len(inner) - 1, separator == "\ufffe")
            start += len(line) + len(separator)
    finally:
        textpage.close()


def characters(page: pdfium.PdfPage) -> int:
    """Return the number of characters on a page, without white space."""
    textpage = page.get_textpage()
    try:
        text = textpage.get_text_range().replace("\ufffe", "")
        return sum(map(len, text.split()))
    finally:
        textpage.close()


class _Probe:
    """Reads the properties of characters from PDFium, with buffers that are made once per page."""

    def __init__(self, textpage: pdfium.PdfTextPage, length: int, shown: Shown) -> None:
        self._page = textpage.raw
        self._shown = shown
        # Both indexes only increase: if they are equal at the end, they are equal everywhere.
        self._alike = _index(self._page, length - 1) == length - 1
        self._matrix = raw.FS_MATRIX()
        self._x, self._y = ctypes.c_double(), ctypes.c_double()
        self._matrix_at = ctypes.byref(self._matrix)
        self._x_at, self._y_at = ctypes.byref(self._x), ctypes.byref(self._y)
        self._edges = [ctypes.c_double() for _ in range(4)]
        self._edges_at = [ctypes.byref(edge) for edge in self._edges]
        self._usual = 0.0

    def line(self, text: str, first: int, last: int, hyphen: bool) -> Line:
        """Describe a line by its first character, and by its last one if the first is unusual.

        Unusual is bold type, or another size than that of the line before. So a bold lead-in or a
        large initial does not make its line a heading.
        """
        page = self._page
        at = first if self._alike else _index(page, first)
        size = self._size(at)
        m = self._matrix
        a, b, c, d = m.a, m.b, m.c, m.d
        _origin(page, at, self._x_at, self._y_at)
        # The distance down the page relative to the line's direction: pages may be rotated.
        down = -(self._x.value * c + self._y.value * d) / (math.hypot(c, d) or 1.0)
        bold = _weight(page, at) >= _BOLD_WEIGHT
        if bold or size != self._usual:
            end = last if self._alike else _index(page, last)
            size = min(size, self._size(end))
            bold = bold and _weight(page, end) >= _BOLD_WEIGHT
            self._usual = size
        turn = round(math.atan2(b, a) / (math.pi / 2)) % 4 if b or a <= 0 else 0
        mapped = _unmapped(page, at) != 1
        parts = self._parts(text, first, turn == self._shown.turn)
        return Line(text, size, down, bold, hyphen, mapped, turn, None, parts)

    def _parts(self, text: str, first: int, horizontal: bool) -> tuple[LinePart, ...]:
        """Return the rows of a line: usually one, with the left edge of each word after its first.

        The first row of a divided word's line is longer by the hyphen, which the text lacks.
        """
        whole, highest = self._box(first, len(text))
        words = text.split()
        lefts = self._lefts(text, words, first) if horizontal else None
        one_row = whole[3] - whole[1] <= ROW * highest
        if not horizontal or (one_row and not (lefts and _has_hole(words, whole, lefts))):
            return (LinePart(0, len(text), whole, lefts),)
        rows: list[list[tuple[int, int, Edges]]] = []
        for word in _WORD.finditer(text):
            start, end = word.span()
            edges, _ = self._box(first + start, end - start)
            if not rows or not _beside(rows[-1][-1][2], edges):
                rows.append([])
            rows[-1].append((start, end, edges))
        return tuple(map(_row, rows))

    def _box(self, first: int, count: int) -> tuple[Edges, float]:
        """Return the box around characters as the page is shown, and the greatest height in it."""
        page, (left, top, right, bottom) = self._page, self._edges_at
        if not self._alike:
            last = _index(page, first + count - 1)
            first = _index(page, first)
            count = last - first + 1
        x, y, x_end, y_end = self._edges
        boxes = []
        for number in range(_rectangles(page, first, count)):
            _rectangle(page, number, left, top, right, bottom)
            boxes.append((x.value, y.value, x_end.value, y_end.value))
        if len(boxes) == 1:
            box = self._shown.box(*boxes[0])
            return box, box[3] - box[1]
        return self._shown.around(boxes) if boxes else (NOWHERE, 0.0)

    def _lefts(self, text: str, words: list[str], first: int) -> tuple[float, ...] | None:
        """Return the left edge of each word after the first; None if one is left of another."""
        page, alike, (left, top, right, bottom) = self._page, self._alike, self._edges_at
        edge = self._edges[self._shown.left]
        edges: list[float] = []
        for at in _starts(text, words, first):
            _char_box(page, at if alike else _index(page, at), left, right, bottom, top)
            edges.append(edge.value)
        lefts = self._shown.lefts(edges)
        return tuple(lefts) if lefts == sorted(lefts) else None

    def _size(self, at: int) -> float:
        """Return the drawn size in points, rounded to .5; set `_matrix` to the character's."""
        _matrix(self._page, at, self._matrix_at)
        scale = math.hypot(self._matrix.c, self._matrix.d) or 1.0
        size: float = _font_size(self._page, at)
        return round(2 * scale * size) / 2


def _starts(text: str, words: list[str], first: int) -> list[int]:
    """Return where each word after the first one begins, in a text that begins at `first`."""
    lengths = list(map(len, words))
    if len(text) == sum(lengths) + len(words) - 1:  # one space between words, as in most lines
        ends = accumulate(lengths[:-1], initial=first)
        return [end + number for number, end in enumerate(ends)][1:]
    return [first + space.end() for space in _SPACE.finditer(text)]


def _has_hole(words: list[str], whole: Edges, lefts: tuple[float, ...]) -> bool:
    """Whether words of a line may have a hole between them, in which others are drawn."""
    height, left = whole[3] - whole[1], whole[0]
    for word, right in zip(words, (*lefts, whole[2]), strict=True):
        if right - left > (len(word) + HOLE) * height:
            return True
        left = right
    return False


def _beside(one: Edges, other: Edges) -> bool:
    """Whether a word is drawn to the right of another one, in the same row and without a hole."""
    middle = (other[1] + other[3]) / 2
    row = one[1] <= middle <= one[3]
    return row and one[0] <= other[0] <= one[2] + HOLE * (one[3] - one[1])


def _row(words: list[tuple[int, int, Edges]]) -> LinePart:
    """Return the part of a line that these words are, each with its span and box."""
    around = words[0][2]
    for _, _, edges in words[1:]:
        around = union(around, edges)
    lefts = tuple(edges[0] for _, _, edges in words[1:])
    return LinePart(words[0][0], words[-1][1], around, lefts)
