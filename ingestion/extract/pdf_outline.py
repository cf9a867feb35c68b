"""The lines of a PDF that its bookmarks lead to."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

FEW_BOOKMARKS = 2
"""Found in the text; fewer are a title, not an outline."""

MAX_TITLE_LINES = 3

_NO_LETTER = re.compile(r"[\W_]+")
_NUMBER = re.compile(r"^\d+")


@dataclass(frozen=True)
class Bookmark:
    """A title of the document's outline, its level, 1 is the highest, and its page, from 0."""

    title: str
    level: int
    page: int


class Line(NamedTuple):
    """A line: its text without outer blanks, type size in points, and distance down its page.

    A tuple, because there are thousands: a frozen dataclass takes three times as long to make.

    `hyphen`: its last word goes on in the next line. `mapped`: its font says what it draws.
    `turn`: the quarter turns of its direction. `bookmark`: which one leads to it.
    """

    text: str
    size: float
    down: float
    bold: bool
    hyphen: bool
    mapped: bool
    turn: int = 0
    bookmark: Bookmark | None = None


def marked(pages: list[list[Line]], bookmarks: Sequence[Bookmark]) -> tuple[list[list[Line]], int]:
    """The lines with the bookmarks that lead to them, and the deepest level of these, 0 for none.

    A bookmark names a page; its line is the next one there that reads like it, numbers apart.
    """
    found = [list(page) for page in pages]
    deepest = count = page = at = 0
    for bookmark in bookmarks:
        if not 0 <= bookmark.page < len(pages):
            continue
        if bookmark.page != page:
            page, at = bookmark.page, 0
        if place := _find(pages[page], at, _plain(bookmark.title)):
            start, end = place
            found[page][start:end] = [
                line._replace(bookmark=bookmark) for line in pages[page][start:end]
            ]
            at, count, deepest = end, count + 1, max(deepest, bookmark.level)
    return (found, deepest) if count >= FEW_BOOKMARKS else (pages, 0)


def _find(lines: Sequence[Line], start: int, title: str) -> tuple[int, int] | None:
    """Where the title stands: one line, or a few."""
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
    """Letters and digits, without the number in front."""
    letters = _NO_LETTER.sub("", title).casefold()
    return _NUMBER.sub("", letters) or letters
