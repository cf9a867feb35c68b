"""PDF: text with the position and font of each line, by pypdfium2."""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import islice

import pypdfium2 as pdfium
import pypdfium2.raw as raw

from callslip.config.settings import ExtractSettings
from callslip.errors import BrokenFile, GarbageText, NeedsPassword, NoText, NoTextLayer
from callslip.ingestion.extract.clean import OF_FONTS
from callslip.ingestion.extract.composer import Composer
from callslip.ingestion.extract.readers import tesseract
from callslip.ingestion.extract.readers.pdf import xfa
from callslip.ingestion.extract.readers.pdf.cells import with_tables
from callslip.ingestion.extract.readers.pdf.forms import Notes, with_values
from callslip.ingestion.extract.readers.pdf.geometry import Shown
from callslip.ingestion.extract.readers.pdf.hidden import (
    Drawn,
    examine,
    hidden_texts,
    take_off,
    unseen_texts,
)
from callslip.ingestion.extract.readers.pdf.layout import assemble
from callslip.ingestion.extract.readers.pdf.left_out import Files, LeftOut
from callslip.ingestion.extract.readers.pdf.lines import characters, lines_of
from callslip.ingestion.extract.readers.pdf.outline import Bookmark, Line
from callslip.ingestion.extract.readers.pdf.ruled import grids
from callslip.ingestion.extract.sniff import PDF
from callslip.ingestion.values import ExtractedText

MAX_UNMAPPED = 0.5
"""The maximum share of characters without a Unicode value; above it the text layer is useless."""

MOST_LABEL = 32
"""The maximum characters of a page's printed number."""

OVER = 1.0
"""Points by which a line may reach over the edge of its page."""

MAX_BOOKMARKS = 10_000
MAX_DEPTH = 6
"""The maximum depth of the outline; deeper bookmarks are left out."""

_PASSWORD_ERRORS = (raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY)
_NO_TITLE = re.compile(r"^$|^untitled|\.[a-z]{2,4}$", re.I)
"""Titles that programs write by default: an empty one, `untitled`, the name of the file."""


def read(data: bytes, limits: ExtractSettings) -> ExtractedText:
    """Read every page in the order of its content, without what a reader cannot see.

    Headings are the lines that bookmarks point to, and lines of larger or bold type. Values of a
    form are lines near their fields. Attached files become documents of their own.

    Raises NeedsPassword, BrokenFile, NoTextLayer (only images or drawings), NoText (blank pages)
    or GarbageText (a text layer in fonts without Unicode values). A file with attachments but
    without text raises neither NoText nor, where OCR cannot run, NoTextLayer.
    """
    with opened(data) as document:
        notes, files, left_out = Notes(document), Files(limits), LeftOut()
        files.add_embedded(document)
        if xfa.is_dynamic(document):
            composer = Composer(limits)
            xfa.put(document, composer)
            return composer.text(
                PDF, _title(document), warnings=files.warnings, attachments=files.all()
            )
        pages = [_page(document, n, notes, files, left_out) for n in range(len(document))]
        title = _title(document)
        bookmarks = list(_bookmarks(document))
        labels = [_label(document, number) for number in range(len(document))]
    warnings = (*left_out.warnings(notes), *files.warnings)
    attached = files.all()
    if attached and not any(pages) and not (left_out.drawn and tesseract.available(limits)):
        return ExtractedText("", PDF, title, warnings=warnings, attachments=attached)
    _judge(pages, left_out)
    made = assemble(pages, bookmarks)
    return ExtractedText(
        made.text,
        PDF,
        title,
        made.headings,
        tuple(replace(page, label=labels[page.number - 1]) for page in made.pages),
        made.tables,
        boxes=made.boxes,
        warnings=warnings,
        attachments=attached,
    )


def _page(
    document: pdfium.PdfDocument, at: int, notes: Notes, files: Files, left_out: LeftOut
) -> list[Line]:
    """Return the lines of a page (from 0), and record what is left out of them."""
    try:
        page = document[at]
        shown, drawn = Shown(page), examine(page)
        lines, hidden = _seen(page, shown, drawn)
        left_out.hidden(at + 1, hidden)
        if ruled := grids(drawn, shown):
            lines = with_tables(lines, ruled, shown.turn)
        fields, attached = notes.read(page, shown)
        files.add(document, attached)
        if fields:
            lines = with_values(lines, fields, shown)
        left_out.seen(at + 1, lines, drawn)
        page.close()
    except pdfium.PdfiumError:
        left_out.unread.append(at + 1)
        return []
    return lines


def _seen(page: pdfium.PdfPage, shown: Shown, drawn: Drawn) -> tuple[list[Line], int]:
    """Return the lines of a page that a reader sees, and the number of characters of the others.

    Only pages with such texts are read twice.
    """
    hidden = 0
    if texts := hidden_texts(page, drawn):
        hidden = characters(page)
        take_off(page, drawn, texts)
    lines = list(lines_of(page, shown))
    if hidden:
        hidden -= _characters(lines)
    size = page.get_size()
    doubtful = any(_may_be_unseen(line, size) for line in lines)
    if doubtful and (texts := unseen_texts(page, drawn)):
        hidden += _characters(lines)
        take_off(page, drawn, texts)
        lines = list(lines_of(page, shown))
        hidden -= _characters(lines)
    return lines, hidden


def _characters(lines: Iterable[Line]) -> int:
    """Return the number of characters of lines, without white space."""
    return sum(len("".join(line.text.split())) for line in lines)


def _may_be_unseen(line: Line, size: tuple[float, float]) -> bool:
    """Whether a line has no size or reaches over an edge of its page."""
    across, down = size[0] + OVER, size[1] + OVER
    for part in line.parts:
        left, top, right, bottom = part.edges
        if not (-OVER <= left <= across and -OVER <= right <= across):
            return True
        if not (-OVER <= top <= down and -OVER <= bottom <= down):
            return True
    return not line.size


def opened(data: bytes) -> pdfium.PdfDocument:
    """Open a PDF. Raises NeedsPassword or BrokenFile."""
    try:
        return pdfium.PdfDocument(data)
    except pdfium.PdfiumError as error:
        if error.err_code in _PASSWORD_ERRORS:
            raise NeedsPassword("the PDF opens only with a password") from None
        raise BrokenFile("the PDF is too damaged to open") from None


def _bookmarks(document: pdfium.PdfDocument) -> Iterator[Bookmark]:
    """Yield the bookmarks that point to pages of the document, up to the first unreadable one."""
    with suppress(pdfium.PdfiumError):
        for item in islice(document.get_toc(max_depth=MAX_DEPTH), MAX_BOOKMARKS):
            target = item.get_dest()
            page = target.get_index() if target else None
            if page is not None:
                yield Bookmark(item.get_title(), item.level + 1, page)


def _label(document: pdfium.PdfDocument, number: int) -> str:
    """Return the printed number of a page (from 0); empty if it is that of the page itself."""
    label = " ".join(document.get_page_label(number).split())[:MOST_LABEL]
    return "" if label == str(number + 1) else label


def _title(document: pdfium.PdfDocument) -> str | None:
    title = str(document.get_metadata_value("Title")).strip()
    return None if _NO_TITLE.search(title) else title


def _judge(pages: list[list[Line]], left_out: LeftOut) -> None:
    """Raise the error of the document as a whole, if it has one."""
    if len(left_out.unread) == len(pages):
        raise BrokenFile("no page of the PDF can be read")
    characters = sum(len(line.text) for page in pages for line in page)
    if not characters and left_out.drawn:
        raise NoTextLayer(f"none of its {len(pages)} pages holds text")
    if not characters:
        raise NoText("its pages are blank")
    unmapped = sum(len(line.text) for page in pages for line in page if not line.mapped)
    if unmapped > MAX_UNMAPPED * characters:
        raise GarbageText(
            f"{unmapped} of {characters} characters have no Unicode value", hint=OF_FONTS
        )
