"""Makes files of several formats from texts, enough of each to measure the cost of a format."""

import csv
import html
import io
import json
import zipfile
from collections.abc import Callable, Iterator, Sequence
from email.message import EmailMessage
from itertools import islice
from pathlib import Path

import docx
import openpyxl
import pptx

from callslip.config.settings import ExtractSettings
from callslip.errors import CallslipError
from callslip.ingestion.extract import extract

MOST_PARAGRAPHS = 200
SHORTEST_TEXT = 500
"""The fewest characters of a text; a shorter text makes a file that is mostly packaging."""

CELLS = 6
SECTION = 8
"""The number of paragraphs under one heading."""


def write(sources: Sequence[Path], folder: Path, each: int) -> list[Path]:
    """Write at most `each` files of each format, one for each text of the sources."""
    texts = list(islice(_texts(sources), each))
    written = []
    for suffix, made in _MAKERS.items():
        for number, paragraphs in enumerate(texts):
            path = folder / f"made-{number:03}{suffix}"
            path.write_bytes(made(paragraphs))
            written.append(path)
    return written


def _texts(sources: Sequence[Path]) -> Iterator[list[str]]:
    for path in sources:
        try:
            text = extract(path.read_bytes(), path.name, ExtractSettings()).text
        except CallslipError:
            continue
        if len(text) >= SHORTEST_TEXT:
            blocks = (" ".join(block.split()) for block in text.split("\n\n"))
            yield list(islice(filter(None, blocks), MOST_PARAGRAPHS))


def _docx(paragraphs: list[str]) -> bytes:
    document, made = docx.Document(), io.BytesIO()
    for number, text in enumerate(paragraphs):
        if number % SECTION == 0:
            document.add_heading(text[:60], 1)
        document.add_paragraph(text)
    document.save(made)
    return made.getvalue()


def _pptx(paragraphs: list[str]) -> bytes:
    deck, made = pptx.Presentation(), io.BytesIO()
    for at in range(0, len(paragraphs), SECTION):
        slide = deck.slides.add_slide(deck.slide_layouts[1])
        slide.shapes[0].text_frame.text = paragraphs[at][:60]
        slide.shapes[1].text_frame.text = "\n".join(paragraphs[at : at + SECTION])
    deck.save(made)
    return made.getvalue()


def _rows(paragraphs: list[str]) -> list[list[str]]:
    words = " ".join(paragraphs).split()
    return [words[at : at + CELLS] for at in range(0, len(words), CELLS)]


def _xlsx(paragraphs: list[str]) -> bytes:
    book, made = openpyxl.Workbook(write_only=True), io.BytesIO()
    sheet = book.create_sheet("Words")
    for row in _rows(paragraphs):
        sheet.append([word.lstrip("=") for word in row])
    book.save(made)
    return made.getvalue()


def _csv(paragraphs: list[str]) -> bytes:
    made = io.StringIO()
    csv.writer(made).writerows(_rows(paragraphs))
    return made.getvalue().encode()


def _html(paragraphs: list[str]) -> bytes:
    body = "".join(
        f"<h2>{html.escape(text[:60])}</h2>" * (number % SECTION == 0)
        + f"<p>{html.escape(text)}</p>\n"
        for number, text in enumerate(paragraphs)
    )
    return f"<!doctype html><html><head><meta charset=utf-8></head><body>{body}</body>".encode()


def _markdown(paragraphs: list[str]) -> bytes:
    return "\n\n".join(
        f"## {text[:60]}\n\n" * (number % SECTION == 0) + text
        for number, text in enumerate(paragraphs)
    ).encode()


def _email(paragraphs: list[str]) -> bytes:
    message = EmailMessage()
    message["Subject"], message["From"] = paragraphs[0][:60], "a@example.org"
    message["To"], message["Date"] = "b@example.org", "Sun, 22 Nov 2026 10:00:00 +0000"
    message.set_content("\n\n".join(paragraphs))
    return message.as_bytes()


def _epub(paragraphs: list[str]) -> bytes:
    made = io.BytesIO()
    chapters = [paragraphs[at : at + 5 * SECTION] for at in range(0, len(paragraphs), 5 * SECTION)]
    names = [f"c{n}" for n in range(len(chapters))]
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as book:
        book.writestr("mimetype", "application/epub+zip")
        book.writestr(
            "META-INF/container.xml",
            '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
            '<rootfile full-path="book.opf"/></rootfiles></container>',
        )
        items = "".join(f'<item id="{name}" href="{name}.xhtml"/>' for name in names)
        spine = "".join(f'<itemref idref="{name}"/>' for name in names)
        book.writestr(
            "book.opf",
            f'<package xmlns="http://www.idpf.org/2007/opf"><manifest>{items}</manifest>'
            f"<spine>{spine}</spine></package>",
        )
        for name, chapter in zip(names, chapters, strict=True):
            book.writestr(f"{name}.xhtml", _html(chapter))
    return made.getvalue()


def _json(paragraphs: list[str]) -> bytes:
    return json.dumps(
        [{"id": n, "title": text[:60], "text": text} for n, text in enumerate(paragraphs)],
        ensure_ascii=False,
    ).encode()


_MAKERS: dict[str, Callable[[list[str]], bytes]] = {
    ".docx": _docx,
    ".pptx": _pptx,
    ".xlsx": _xlsx,
    ".csv": _csv,
    ".html": _html,
    ".md": _markdown,
    ".eml": _email,
    ".epub": _epub,
    ".json": _json,
}
