"""PDF: text with the position and font of each line, by pypdfium2."""

import ctypes
import math
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice, zip_longest

import pypdfium2 as pdfium
import pypdfium2.raw as raw

from callslip.config.settings import ExtractSettings
from callslip.errors import BrokenFile, GarbageText, NeedsPassword, NoText, NoTextLayer
from callslip.ingestion.extract.readers.pdf.layout import assemble
from callslip.ingestion.extract.readers.pdf.outline import Bookmark, Line
from callslip.ingestion.extract.sniff import PDF
from callslip.ingestion.values import ExtractedText

MAX_UNMAPPED = 0.5
"""The maximum share of characters without a Unicode value; above it the text layer is useless."""

MAX_BOOKMARKS = 10_000
MAX_DEPTH = 6
"""The maximum depth of the outline; deeper bookmarks are left out."""

_PASSWORD_ERRORS = (raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY)
_SEPARATOR = re.compile("(\r\n|\ufffe)")
"""PDFium ends a line with CRLF, or with U+FFFE in place of the hyphen of a divided word."""

_BOLD_WEIGHT = 600

_index, _matrix = raw.FPDFText_GetCharIndexFromTextIndex, raw.FPDFText_GetMatrix
_font_size, _weight = raw.FPDFText_GetFontSize, raw.FPDFText_GetFontWeight
_origin, _unmapped = raw.FPDFText_GetCharOrigin, raw.FPDFText_HasUnicodeMapError

_NO_TITLE = re.compile(r"^$|^untitled|\.[a-z]{2,4}$", re.I)
"""Titles that programs write by default: an empty one, `untitled`, the name of the file."""


def read(data: bytes, limits: ExtractSettings) -> ExtractedText:
    """Read every page in the order of its content.

    Headings are the lines that bookmarks point to, and lines of larger or bold type.

    Raises NeedsPassword, BrokenFile, NoTextLayer (only images or drawings), NoText (blank pages)
    or GarbageText (a text layer in fonts without Unicode values).
    """
    try:
        document = pdfium.PdfDocument(data)
    except pdfium.PdfiumError as error:
        if error.err_code in _PASSWORD_ERRORS:
            raise NeedsPassword("the PDF opens only with a password") from None
        raise BrokenFile("the PDF is too damaged to open") from None
    with document:
        pages: list[list[Line]] = []
        unread = []
        drawn = False
        for number in range(len(document)):
            try:
                page = document[number]
                lines = list(_lines(page))
                drawn = (
                    drawn or bool(lines) or next(page.get_objects(max_depth=1), None) is not None
                )
                page.close()
            except pdfium.PdfiumError:
                unread.append(number + 1)
                lines = []
            pages.append(lines)
        title = document.get_metadata_value("Title").strip()
        bookmarks = list(_bookmarks(document))
    _judge(pages, unread, drawn)
    text, headings, spans, tables = assemble(pages, bookmarks)
    return ExtractedText(
        text,
        PDF,
        None if _NO_TITLE.search(title) else title,
        headings,
        spans,
        tables,
        warnings=(f"pages that cannot be read: {_some(unread)}",) if unread else (),
    )


def _bookmarks(document: pdfium.PdfDocument) -> Iterator[Bookmark]:
    """Yield the bookmarks that point to pages of the document, up to the first unreadable one."""
    with suppress(pdfium.PdfiumError):
        for item in islice(document.get_toc(max_depth=MAX_DEPTH), MAX_BOOKMARKS):
            target = item.get_dest()
            page = target.get_index() if target else None
            if page is not None:
                yield Bookmark(item.get_title(), item.level + 1, page)


def _judge(pages: list[list[Line]], unread: list[int], drawn: bool) -> None:
    """Raise the error of the document as a whole, if it has one."""
    if len(unread) == len(pages):
        raise BrokenFile("no page of the PDF can be read")
    characters = sum(len(line.text) for page in pages for line in page)
    if not characters and drawn:
        raise NoTextLayer(f"none of its {len(pages)} pages holds text")
    if not characters:
        raise NoText("its pages are blank")
    unmapped = sum(len(line.text) for page in pages for line in page if not line.mapped)
    if unmapped > MAX_UNMAPPED * characters:
        raise GarbageText(f"{unmapped} of {characters} characters have no Unicode value")


def _some(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers[:10])) + (" …" if len(numbers) > 10 else "")


def _lines(page: pdfium.PdfPage) -> Iterator[Line]:
    """Yield the lines of a page.

    Calls PDFium five to eight times per line, not per character, because the calls take most of the
    time.
    """
    textpage = page.get_textpage()
    try:
        text = textpage.get_text_range()
        probe = _Probe(textpage, len(text))
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


class _Probe:
    """Reads the properties of characters from PDFium, with buffers that are made once per page."""

    def __init__(self, textpage: pdfium.PdfTextPage, length: int) -> None:
        self._page = textpage.raw
        # Both indexes only increase: if they are equal at the end, they are equal everywhere.
        self._alike = _index(self._page, length - 1) == length - 1
        self._matrix = raw.FS_MATRIX()
        self._x, self._y = ctypes.c_double(), ctypes.c_double()
        self._matrix_at = ctypes.byref(self._matrix)
        self._x_at, self._y_at = ctypes.byref(self._x), ctypes.byref(self._y)
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
        return Line(text, size, down, bold, hyphen, _unmapped(page, at) != 1, turn)

    def _size(self, at: int) -> float:
        """Return the drawn size in points, rounded to .5; set `_matrix` to the character's."""
        _matrix(self._page, at, self._matrix_at)
        scale = math.hypot(self._matrix.c, self._matrix.d) or 1.0
        size: float = _font_size(self._page, at)
        return round(2 * scale * size) / 2
