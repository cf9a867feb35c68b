"""Finds the lines of a PDF that its bookmarks point to."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from callslip.ingestion.extract.readers.pdf.geometry import Edges

FEW_BOOKMARKS = 2
"""The minimum number of bookmarks that occur in the text; fewer are a title, not an outline."""

MAX_TITLE_LINES = 3

_NO_LETTER = re.compile(r"[\W_]+")
_NUMBER = re.compile(r"^\d+")


@dataclass(frozen=True)
class Bookmark:
    """A title of the document's outline, its level (1 is the highest) and its page (from 0)."""

    title: str
    level: int
    page: int


class LinePart(NamedTuple):
    """A part of a line that is drawn in one row: `text[start:end]` of the line.

    `edges` and `words` are those of its `Box`. A line has more parts if a program draws words of
    several rows one after the other.
    """

    start: int
    end: int
    edges: Edges
    words: tuple[float, ...] | None


class Table(NamedTuple):
    """A ruled table. Its rows have the same object, whose identity tells tables apart."""

    header_rows: int


class Line(NamedTuple):
    """A line: text without outer white space, type size in points, distance down the page.

    `hyphen`: the last word continues in the next line. `mapped`: the font has a Unicode value for
    the first character. `turn`: the direction in quarter turns. `bookmark`: the bookmark that
    points to the line. `parts`: where it is drawn. `table`: the ruled table whose row the line is.

    A tuple, because there are thousands: a frozen dataclass takes three times as long to create.
    """

    text: str
    size: float
    down: float
    bold: bool
    hyphen: bool
    mapped: bool
    turn: int = 0
    bookmark: Bookmark | None = None
    parts: tuple[LinePart, ...] = ()
    table: Table | None = None


def marked(pages: list[list[Line]], bookmarks: Sequence[Bookmark]) -> tuple[list[list[Line]], int]:
    """Return the lines with their bookmarks, and the deepest level of these bookmarks, 0 for none.

    A bookmark states a page. Its line is the next one on that page with the bookmark's title;
    leading numbers, punctuation and case are ignored.
    """
    headed = [list(page) for page in pages]
    deepest = count = page = at = 0
    for bookmark in bookmarks:
        if not 0 <= bookmark.page < len(pages):
            continue
        if bookmark.page != page:
            page, at = bookmark.page, 0
        if span := _find(pages[page], at, _plain(bookmark.title)):
            start, end = span
            headed[page][start:end] = [
                line._replace(bookmark=bookmark) for line in pages[page][start:end]
            ]
            at, count, deepest = end, count + 1, max(deepest, bookmark.level)
    return (headed, deepest) if count >= FEW_BOOKMARKS else (pages, 0)


def _find(lines: Sequence[Line], start: int, title: str) -> tuple[int, int] | None:
    """Return the range of the one or few lines from `start` that are the title, or None."""
    for first in range(start, len(lines)) if title else ():
        read = ""
        for last in range(first, min(first + MAX_TITLE_LINES, len(lines))):
            read += lines[last].text
            plain = _plain(read)
            if plain == title:
                return first, last + 1
            if not plain or not title.startswith(plain):
                break
    return None


def _plain(title: str) -> str:
    """Return the case-folded letters and digits without a leading number."""
    letters = _NO_LETTER.sub("", title).casefold()
    return _NUMBER.sub("", letters) or letters
