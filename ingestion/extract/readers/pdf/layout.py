"""Joins the lines of a PDF into paragraphs, headings, tables and pages."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from callslip.ingestion.boxes import Box
from callslip.ingestion.extract.readers.pdf.outline import Bookmark, Line, marked
from callslip.ingestion.values import Block, Heading, Page

PARAGRAPH_GAP = 1.35
"""A line distance above this multiple of the document's usual distance starts a paragraph."""

LARGER = 1.1
"""Type that is larger than body type by this factor is the type of a heading."""

MAX_HEADING_CHARS = 120
MAX_HEADING_LINES = 3
MAX_HEADING_SHARE = 0.25
"""The maximum share of large or bold characters. A document with more is a poster or a form without
headings."""

RUNNING_HEAD = 3
"""A heading that occurs on this many pages, with any digits, is a running head instead."""

BESIDE = 0.8
"""Lines are side by side if their vertical distance is less than this many type sizes."""

FEW_LINES = 10

MIN_ROWS = 4
MIN_FIGURES = 2
MAX_HEADER_ROWS = 3
MAX_OTHER_ROWS = 0.2
"""A table has at least `MIN_ROWS` rows with at least `MIN_FIGURES` figures each, after at most
`MAX_HEADER_ROWS` header rows. At most this share of its rows are titles."""

BODY = 0
"""The level of a paragraph that is not a heading."""

_FIGURE = re.compile(r"(?<!\S)(?:[-+(]?[$€£₩]?[\d.,]*\d[)%]?|[-–—])(?!\S)")
_FIGURE_END = re.compile(r"[\d–—-](?=[)%]?(?:\s|$))")
"""Matches the end of each figure; a fast check, because most lines of a text are no table rows."""

_DIGITS = re.compile(r"\d+")
_WORD = re.compile(r"[^\W\d_]{2}")
_SENTENCE_END = re.compile(r"[.!?。…][\"'”’)\]]*$")


class Assembled(NamedTuple):
    """The text of a document, and the spans of its headings, pages, tables and lines."""

    text: str
    headings: tuple[Heading, ...]
    pages: tuple[Page, ...]
    tables: tuple[Block, ...]
    boxes: tuple[Box, ...]


@dataclass(frozen=True)
class Paragraph:
    """A paragraph, a heading or a table, with its page number.

    `header` is the length of the header rows in characters for a table, else None.
    """

    text: str
    level: int
    page: int
    lines: list[Line]
    header: int | None = None


def assemble(pages: list[list[Line]], bookmarks: Sequence[Bookmark] = ()) -> Assembled:
    """Join lines into paragraphs, headings and tables.

    Blank lines separate the paragraphs. Lines that bookmarks point to are headings of the
    bookmark's level; larger or bold lines are headings below these. Without bookmarks only larger
    or bold lines are headings.
    """
    pages, deepest = marked([_downwards(page) for page in pages], bookmarks)
    levels = {style: level + deepest for style, level in _levels(pages).items()}
    step = _usual_step(pages)
    blocks = [
        Paragraph(text, _heading_level(text, lines, levels, turn), number, lines, _header(lines))
        for number, page in enumerate(pages, 1)
        for turn in [_usual_turn(page)]
        for lines in _paragraphs(page, levels, step)
        for text in [_join(lines)]
    ]
    running = _running_heads(blocks)
    headings: list[Heading] = []
    tables: list[Block] = []
    boxes: list[Box] = []
    bounds: dict[int, tuple[int, int]] = {}
    at = 0
    for block in blocks:
        end = at + len(block.text)
        if block.level and block.text not in running:
            headings.append(Heading(at, end, block.level))
        if block.header is not None and not block.level:
            tables.append(Block(at, end, "table", at + block.header))
        boxes += _boxes(block, at)
        bounds[block.page] = (bounds.get(block.page, (at, at))[0], end)
        at = end + 2
    spans = []
    last = 0
    for number in range(1, len(pages) + 1):
        start, last = bounds.get(number, (last, last))  # an empty page is an empty span
        spans.append(Page(number, start, last))
    text = "\n\n".join(block.text for block in blocks)
    return Assembled(text, tuple(headings), tuple(spans), tuple(tables), tuple(boxes))


def _boxes(block: Paragraph, start: int) -> Iterator[Box]:
    """Yield the box of each line of a paragraph that begins at `start`."""
    for line, text in zip(block.lines, _pieces(block.lines), strict=True):
        for part in line.parts:
            yield Box(start + part.start, start + part.end, block.page, *part.edges, part.words)
        start += len(text)


def _downwards(page: list[Line]) -> list[Line]:
    """Return the lines of a page with one column from top to bottom.

    Some programs draw them in another order. If two lines drawn in succession are both side by side
    with other lines, the page has columns or a table, and the drawing order stays. It also stays if
    the page has lines in several directions, or too few lines to show its layout.
    """
    if len(page) < FEW_LINES or len({line.turn for line in page}) > 1:
        return page
    if any(line.table for line in page):  # whose rows stay together
        return page
    ordered = sorted(range(len(page)), key=lambda n: page[n].down)
    beside: set[int] = set()
    for n, m in pairwise(ordered):
        if page[m].down - page[n].down < BESIDE * max(page[n].size, page[m].size):
            beside |= {n, m}
    columns = any(n in beside and n + 1 in beside for n in range(len(page) - 1))
    return page if columns else [page[n] for n in ordered]


Style = tuple[float, bool]


def _usual_turn(page: list[Line]) -> int:
    if len({line.turn for line in page}) == 1:
        return page[0].turn
    turns: Counter[int] = Counter()
    for line in page:
        turns[line.turn] += len(line.text)
    return turns.most_common(1)[0][0] if turns else 0


def _levels(pages: list[list[Line]]) -> dict[Style, int]:
    """Return the heading level of each style that is clearly larger or bolder than the body."""
    weight: Counter[Style] = Counter()
    for line in _all(pages):
        weight[line.size, line.bold] += len(line.text)
    if not weight:
        return {}
    (body, body_bold), _ = weight.most_common(1)[0]
    heads = {
        (size, bold)
        for size, bold in weight
        if size >= body * LARGER or (bold and not body_bold and size >= body)
    }
    if sum(weight[style] for style in heads) > MAX_HEADING_SHARE * weight.total():
        return {}
    ranked = sorted(heads, reverse=True)
    return {style: min(rank, 6) for rank, style in enumerate(ranked, 1)}


def _usual_step(pages: list[list[Line]]) -> float:
    """Return the median distance between lines, in type sizes."""
    steps = [
        (line.down - before.down) / line.size
        for page in pages
        for before, line in pairwise(page)
        if line.size and 0.5 < (line.down - before.down) / line.size < 4
    ]
    return median(steps) if steps else 1.2


def _paragraphs(page: list[Line], levels: dict[Style, int], usual: float) -> Iterator[list[Line]]:
    block: list[Line] = []
    for line in page:
        if block and _parts(block[-1], line, levels, usual):
            yield block
            block = []
        block.append(line)
    if block:
        yield block


def _parts(before: Line, line: Line, levels: dict[Style, int], usual: float) -> bool:
    """Whether a new paragraph starts with this line."""
    if before.table is not None or line.table is not None:
        return before.table is not line.table
    if before.bookmark is not line.bookmark or before.turn != line.turn:
        return True
    if levels.get((before.size, before.bold)) != levels.get((line.size, line.bold)):
        return True
    if before.hyphen:
        return False
    step = line.down - before.down
    size = max(line.size, before.size)
    if step < -size:  # the next column: a sentence may continue there
        return _SENTENCE_END.search(before.text) is not None
    return step > PARAGRAPH_GAP * usual * size


def _join(lines: list[Line]) -> str:
    """Join lines by line ends; join a divided word if its second part starts in lower case."""
    return "".join(_pieces(lines))


def _pieces(lines: list[Line]) -> Iterator[str]:
    """Yield each line with what follows it in the text."""
    for line, after in pairwise(lines):
        if not line.hyphen:
            yield f"{line.text}\n"
        elif after.text[0].islower():
            yield line.text
        else:
            yield f"{line.text}-\n"
    yield lines[-1].text


def _header(lines: list[Line]) -> int | None:
    """Return the length of the header rows if the lines are a table of figures, else None.

    PDF has no tables. Ruled tables are known before; of the others, successive lines of many
    numbers are the case that is easy to detect.
    """
    if lines[0].table is not None:
        heads = lines[0].table.header_rows
        return len(_join(lines[: heads + 1])) - len(lines[heads].text) if heads else 0
    if len(lines) < MIN_ROWS:
        return None
    rows = [_is_row(line.text) for line in lines]
    if sum(rows) < MIN_ROWS:
        return None
    first = rows.index(True)
    if first > MAX_HEADER_ROWS or rows[first:].count(False) > MAX_OTHER_ROWS * len(rows):
        return None
    return len(_join(lines[: first + 1])) - len(lines[first].text)


def _is_row(text: str) -> bool:
    if len(_FIGURE_END.findall(text)) < MIN_FIGURES:
        return False
    figures = len(_FIGURE.findall(text))
    return figures >= MIN_FIGURES and 2 * figures >= len(text.split())


def _heading_level(text: str, lines: list[Line], levels: dict[Style, int], turn: int) -> int:
    """Return the heading level of the lines, whose text is `text`.

    Text in another direction than that of the page, such as a margin note, is never a heading.
    """
    if lines[0].bookmark is not None:
        return lines[0].bookmark.level
    if lines[0].turn != turn or lines[0].table is not None:
        return BODY
    if len(text) > MAX_HEADING_CHARS or len(lines) > MAX_HEADING_LINES:
        return BODY
    if not _WORD.search(text) or text[-1] in ".,;:":
        return BODY
    return levels.get((lines[0].size, lines[0].bold), BODY)


def _running_heads(blocks: Iterable[Paragraph]) -> set[str]:
    pages: dict[str, set[int]] = {}
    heads = [block for block in blocks if block.level]
    for block in heads:
        pages.setdefault(_DIGITS.sub("#", block.text), set()).add(block.page)
    return {
        block.text for block in heads if len(pages[_DIGITS.sub("#", block.text)]) >= RUNNING_HEAD
    }


def _all(pages: list[list[Line]]) -> Iterator[Line]:
    for page in pages:
        yield from page
