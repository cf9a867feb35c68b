"""Takes what a reader cannot see off a PDF page, before its text is read."""

import ctypes
import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pypdfium2 as pdfium
import pypdfium2.raw as raw

from callslip.ingestion.extract.readers.pdf.calls import unchecked

MOST_OBJECTS = 300_000
"""The maximum number of objects of a page that are examined."""

MOST_DEPTH = 12
"""The maximum depth of forms within forms that are examined, as in PDFium."""

NEAR_WHITE = 245
"""Text whose channels are all at least this is invisible on `PALE` ground."""

PALE = 230
MOST_DARK = 0.03
"""The maximum share of a text's ground that is darker than `PALE`."""

FAINT = 12
"""The maximum opacity, of 255, of text that is not seen."""

LEAST_SIZE = 0.5
"""Points below which text is too small to be seen, at any magnification that is of use."""

RENDERED_PIXELS = 1_000_000

_DARK = bytes(value < PALE for value in range(256))
"""Maps a channel to 1 if it is darker than `PALE`."""

_IMAGE, _FORM = raw.FPDF_PAGEOBJ_IMAGE, raw.FPDF_PAGEOBJ_FORM
_type, _mode = unchecked(raw.FPDFPageObj_GetType), unchecked(raw.FPDFTextObj_GetTextRenderMode)
_bounds, _fill = unchecked(raw.FPDFPageObj_GetBounds), unchecked(raw.FPDFPageObj_GetFillColor)
_of_page, _of_form = unchecked(raw.FPDFPage_GetObject), unchecked(raw.FPDFFormObj_GetObject)
_FILLED, _INVISIBLE = raw.FPDF_TEXTRENDERMODE_FILL, raw.FPDF_TEXTRENDERMODE_INVISIBLE

Bounds = tuple[float, float, float, float]
"""Left, bottom, right and top, in PDF coordinates."""

Matrix = tuple[float, float, float, float, float, float]

_Edges = ctypes.c_float * 4
_OFFSETS = range(0, 16, 4)
_IDENTITY: Matrix = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)


class Text(NamedTuple):
    """A text object, the form that contains it (None: the page), and the form's matrix."""

    raw: Any
    form: Any
    matrix: Matrix


@dataclass
class Drawn:
    """What is drawn on a page: texts, and other objects with the matrices of their forms.

    `white` and `invisible` are the texts that may be, but need not be, hidden: on dark ground, or
    as the text layer of a scan.
    """

    texts: list[Text] = field(default_factory=list)
    others: list[tuple[Any, Matrix]] = field(default_factory=list)
    hidden: list[Text] = field(default_factory=list)
    white: list[Text] = field(default_factory=list)
    invisible: list[Text] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.texts or self.others)

    @property
    def has_image(self) -> bool:
        """Whether an image is drawn."""
        return any(_type(handle) == _IMAGE for handle, _ in self.others)


def examine(page: pdfium.PdfPage) -> Drawn:
    """Sort the texts of a page by whether a reader can see them.

    Calls PDFium three times per object, because the calls take most of the time.
    """
    drawn = Drawn()
    texts, others = drawn.texts, drawn.others
    color = (ctypes.c_uint * 4)()
    channels = [ctypes.byref(ctypes.c_uint.from_buffer(color, 4 * n)) for n in range(4)]
    of_color = memoryview(color).cast("B")
    lists: dict[bytes, list[Text] | None] = {}
    for form, matrix, handles in _objects(page):
        for handle in handles:
            mode = _mode(handle)
            if mode < 0:
                if _type(handle) != _FORM:
                    others.append((handle, matrix))
                continue
            text = Text(handle, form, matrix)
            texts.append(text)
            if mode == _FILLED and _fill(handle, *channels):
                key = of_color.tobytes()
                if key not in lists:
                    *rgb, opacity = color
                    white = drawn.white if min(rgb) >= NEAR_WHITE else None
                    lists[key] = drawn.hidden if opacity <= FAINT else white
                texts_of_color = lists[key]
                if texts_of_color is not None:
                    texts_of_color.append(text)
            elif mode == _INVISIBLE:
                drawn.invisible.append(text)
    return drawn


def hidden_texts(page: pdfium.PdfPage, drawn: Drawn) -> list[Text]:
    """Return the texts that are transparent, white on white, or invisible.

    Invisible text is seen if it is the text layer of a scan, white text on darker ground.
    """
    return [*drawn.hidden, *_on_pale_ground(page, drawn), *_without_picture(drawn)]


def unseen_texts(page: pdfium.PdfPage, drawn: Drawn) -> list[Text]:
    """Return the texts that are off the page or too small to be seen."""
    left, bottom, right, top = page.get_bbox()
    unseen = []
    for text in drawn.texts:
        x, y, x_end, y_end = bounds_of(text.raw, text.matrix)
        outside = x_end < left or x > right or y_end < bottom or y > top
        if outside or (min(x_end - x, y_end - y) < LEAST_SIZE and _size(text.raw) < LEAST_SIZE):
            unseen.append(text)
    return unseen


def take_off(page: pdfium.PdfPage, drawn: Drawn, texts: list[Text]) -> None:
    """Remove texts from a page that is open. The file itself is not changed."""
    for text in texts:
        on_page = text.form is None
        remove = raw.FPDFPage_RemoveObject if on_page else raw.FPDFFormObj_RemoveObject
        if remove(page.raw if on_page else text.form, text.raw):
            raw.FPDFPageObj_Destroy(text.raw)
    gone = set(map(id, texts))
    drawn.texts = [text for text in drawn.texts if id(text) not in gone]


def _objects(page: pdfium.PdfPage) -> Iterator[tuple[Any, Matrix, list[Any]]]:
    """Yield the page (None) and each of its forms: from its coordinates to the page, its objects.

    The objects of a form come before those of the forms in it.
    """
    left = MOST_OBJECTS
    stack: list[tuple[Any, Matrix, int]] = [(None, _IDENTITY, 0)]
    of_form = raw.FS_MATRIX()
    while stack:
        form, outer, depth = stack.pop()
        get = _of_page if form is None else _of_form
        count = raw.FPDFPage_CountObjects if form is None else raw.FPDFFormObj_CountObjects
        whole = page.raw if form is None else form
        handles = [get(whole, number) for number in range(min(count(whole), left))]
        left -= len(handles)
        yield form, outer, handles
        for handle in handles if depth < MOST_DEPTH else ():
            if _type(handle) == _FORM and raw.FPDFPageObj_GetMatrix(handle, of_form):
                m = of_form
                stack.append((handle, _times((m.a, m.b, m.c, m.d, m.e, m.f), outer), depth + 1))


def _times(m: Matrix, n: Matrix) -> Matrix:
    """Return the matrix that applies `m` and then `n`."""
    return (
        m[0] * n[0] + m[1] * n[2],
        m[0] * n[1] + m[1] * n[3],
        m[2] * n[0] + m[3] * n[2],
        m[2] * n[1] + m[3] * n[3],
        m[4] * n[0] + m[5] * n[2] + n[4],
        m[4] * n[1] + m[5] * n[3] + n[5],
    )


def _moved(bounds: Bounds, m: Matrix) -> Bounds:
    left, bottom, right, top = bounds
    corners = ((left, bottom), (left, top), (right, bottom), (right, top))
    xs = [m[0] * x + m[2] * y + m[4] for x, y in corners]
    ys = [m[1] * x + m[3] * y + m[5] for x, y in corners]
    return min(xs), min(ys), max(xs), max(ys)


def _size(handle: Any) -> float:
    """Return the smaller of the width and the height of a type's unit, in points."""
    size, matrix = ctypes.c_float(), raw.FS_MATRIX()
    if not raw.FPDFTextObj_GetFontSize(handle, size):
        return math.inf
    raw.FPDFPageObj_GetMatrix(handle, matrix)
    scales = math.hypot(matrix.a, matrix.b), math.hypot(matrix.c, matrix.d)
    return float(size.value) * min(scales)


def bounds_of(handle: Any, matrix: Matrix) -> Bounds:
    """Return where an object is on its page; nowhere if PDFium cannot say."""
    edges = _Edges()
    at = (ctypes.byref(edges, offset) for offset in _OFFSETS)
    _bounds(handle, *at)
    left, bottom, right, top = edges
    bounds = (left, bottom, right, top)
    return bounds if matrix is _IDENTITY else _moved(bounds, matrix)


def _holds(bounds: Bounds, text: Bounds) -> bool:
    """Whether bounds hold the middle of a text."""
    x, y = (text[0] + text[2]) / 2, (text[1] + text[3]) / 2
    return bounds[0] <= x <= bounds[2] and bounds[1] <= y <= bounds[3]


def _without_picture(drawn: Drawn) -> list[Text]:
    """Return the invisible texts that are no text layer: that stand over no picture of them.

    The picture is an image, or any drawing on a page without visible text. The visible text of a
    scan, such as a stamp, has fewer parts than its text layer.
    """
    invisible = drawn.invisible
    visible = len(drawn.texts) - len(invisible)
    if not invisible or visible > len(invisible):
        return invisible
    pictures = [
        bounds_of(handle, matrix)
        for handle, matrix in drawn.others
        if not visible or _type(handle) == _IMAGE
    ]
    return [
        text
        for text in invisible
        for where in [bounds_of(text.raw, text.matrix)]
        if not any(_holds(picture, where) for picture in pictures)
    ]


def _on_pale_ground(page: pdfium.PdfPage, drawn: Drawn) -> list[Text]:
    """Return the white texts that nothing makes visible.

    Nothing is drawn under most of them, or a dark area. The page is drawn to see the others.
    """
    if not drawn.white:
        return []
    grounds = [(handle, bounds_of(handle, matrix)) for handle, matrix in drawn.others]
    hidden: list[Text] = []
    unsure: list[tuple[Text, Bounds]] = []
    for text in drawn.white:
        where = bounds_of(text.raw, text.matrix)
        under = [handle for handle, bounds in grounds if _holds(bounds, where)]
        if not under:
            hidden.append(text)
        elif not any(map(_is_dark_area, under)):
            unsure.append((text, where))
    if unsure:
        with suppress(pdfium.PdfiumError):  # else nothing shows that they are hidden
            hidden += _drawn_pale(page, unsure)
    return hidden


def _is_dark_area(handle: Any) -> bool:
    """Whether an object is a filled path that is not near white."""
    fill, stroke = ctypes.c_int(), ctypes.c_int()
    color = [ctypes.c_uint() for _ in range(4)]
    return bool(
        _type(handle) == raw.FPDF_PAGEOBJ_PATH
        and raw.FPDFPath_GetDrawMode(handle, fill, stroke)
        and fill.value != raw.FPDF_FILLMODE_NONE
        and _fill(handle, *map(ctypes.byref, color))
        and color[3].value > FAINT
        and min(channel.value for channel in color[:3]) < PALE
    )


def _drawn_pale(page: pdfium.PdfPage, texts: list[tuple[Text, Bounds]]) -> list[Text]:
    """Return those of these texts that stand on near white in an image of the page."""
    width, height = page.get_size()
    bitmap = page.render(scale=min(1.0, math.sqrt(RENDERED_PIXELS / max(1.0, width * height))))
    try:
        return [text for text, where in texts if _is_pale(page, bitmap, where)]
    finally:
        bitmap.close()


def _is_pale(page: pdfium.PdfPage, bitmap: pdfium.PdfBitmap, bounds: Bounds) -> bool:
    """Whether the drawn page is near white within these bounds."""
    xs, ys = [], []
    for x, y in ((bounds[0], bounds[1]), (bounds[2], bounds[3])):
        across, down = ctypes.c_int(), ctypes.c_int()
        size = (0, 0, bitmap.width, bitmap.height, 0)
        raw.FPDF_PageToDevice(page, *size, x, y, across, down)
        xs.append(across.value)
        ys.append(down.value)
    left, right = max(0, min(xs)), min(bitmap.width, max(xs) + 1)
    first, last = max(0, min(ys)), min(bitmap.height, max(ys) + 1)
    dark = 0
    for row in range(first, last):
        start = row * bitmap.stride
        of_row = slice(start + left * bitmap.n_channels, start + right * bitmap.n_channels)
        dark += bytes(bitmap.buffer[of_row]).translate(_DARK).count(1)
    channels: int = (last - first) * (right - left) * bitmap.n_channels
    return dark <= MOST_DARK * max(0, channels)
