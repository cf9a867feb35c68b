"""Reads the text of a file with the library of its format alone, as a baseline for extraction.

Without headings, type detection, checks and limits. Each function takes the bytes and returns the
number of characters, or of tokens and values if the library returns no text.
"""

import csv
import email
import email.policy
import io
import json
import zipfile
from collections.abc import Callable

import docx
import inscriptis
import openpyxl
import pptx
import pypdfium2
from markdown_it import MarkdownIt

from callslip.ingestion.extract.sniff import (
    CSV,
    DOCX,
    EMAIL,
    EPUB,
    HTML,
    JSON,
    MARKDOWN,
    PDF,
    PLAIN,
    PPTX,
    XLSX,
)


def _pdf(data: bytes) -> int:
    document = pypdfium2.PdfDocument(data)
    try:
        return sum(len(page.get_textpage().get_text_bounded()) for page in document)
    finally:
        document.close()


def _docx(data: bytes) -> int:
    document = docx.Document(io.BytesIO(data))
    cells = (c.text for table in document.tables for row in table.rows for c in row.cells)
    return sum(len(p.text) for p in document.paragraphs) + sum(map(len, cells))


def _html(data: bytes) -> int:
    return len(inscriptis.get_text(data.decode("utf-8", "replace")))


def _markdown(data: bytes) -> int:
    return len(MarkdownIt().parse(data.decode("utf-8", "replace")))


def _email(data: bytes) -> int:
    message = email.message_from_bytes(data, policy=email.policy.default)
    return sum(len(str(part.get_content())) for part in message.walk() if not part.is_multipart())


def _plain(data: bytes) -> int:
    return len(data.decode("utf-8", "replace"))


def _csv(data: bytes) -> int:
    rows = csv.reader(io.StringIO(data.decode("utf-8", "replace"), newline=""))
    return sum(len(cell) for row in rows for cell in row)


def _json(data: bytes) -> int:
    """Parse one JSON value, or else a value on each line."""
    try:
        return len(json.loads(data))
    except ValueError:
        return sum(len(json.loads(line)) for line in data.splitlines())


def _epub(data: bytes) -> int:
    with zipfile.ZipFile(io.BytesIO(data)) as book:
        chapters = [name for name in book.namelist() if name.endswith("html")]
        return sum(_html(book.read(name)) for name in chapters)


def _xlsx(data: bytes) -> int:
    book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
    rows = (row for sheet in book.worksheets for row in sheet.iter_rows(values_only=True))
    return sum(len(str(value)) for row in rows for value in row)


def _pptx(data: bytes) -> int:
    slides = pptx.Presentation(io.BytesIO(data)).slides
    return sum(len(s.text_frame.text) for slide in slides for s in slide.shapes if s.has_text_frame)


ALONE: dict[str, Callable[[bytes], int]] = {
    PDF: _pdf,
    DOCX: _docx,
    PPTX: _pptx,
    XLSX: _xlsx,
    CSV: _csv,
    HTML: _html,
    MARKDOWN: _markdown,
    EMAIL: _email,
    EPUB: _epub,
    JSON: _json,
    PLAIN: _plain,
}
