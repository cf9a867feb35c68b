"""The lines of a PDF to paragraphs, headings and pages."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from ingestion.parts import Heading, Page

PARAGRAPH_GAP = 1.35
"""A step down larger than this many usual steps of the document starts a paragraph."""

LARGER = 1.1
"""Type larger than the body by this factor is a heading's."""

MAX_HEADING_CHARS = 120
MAX_HEADING_LINES = 3
MAX_HEADING_SHARE = 0.25
"""Of all characters: where so much is large or bold, it is a poster or a form without headings."""

RUNNING_HEAD = 3
"""The same large line on this many pages is a running head, not a heading."""

BODY = 0
"""Level of a block that is no heading."""

_DIGITS = re.compile(r"\d+")
_WORD = re.compile(r"[^\W\d_]{2}")
_SENTENCE_END = re.compile(r"[.!?。…][\"'”’)\]]*$")


@dataclass(frozen=True)
class Line:
    """A line: its text without outer blanks, type size in points, and distance down its page.

    `hyphen`: its last word goes on in the next line. `mapped`: its font says what it draws.
    """

    text: str
    size: float
    down: float
    bold: bool
    hyphen: bool
    mapped: bool


@dataclass(frozen=True)
class Block:
    """A paragraph or a heading, and the page it stands on."""

    text: str
    level: int
    page: int


def assemble(pages: list[list[Line]]) -> tuple[str, tuple[Heading, ...], tuple[Page, ...]]:
    """Join lines to blocks with blank lines between them; say where headings and pages are."""
    levels = _levels(pages)
    step = _usual_step(pages)
    blocks = [
        Block(_join(lines), _heading_level(lines, levels), number)
        for number, page in enumerate(pages, 1)
        for lines in _paragraphs(page, levels, step)
    ]
    running = _running_heads(blocks)
    headings: list[Heading] = []
    bounds: dict[int, tuple[int, int]] = {}
    at = 0
    for block in blocks:
        end = at + len(block.text)
        if block.level and block.text not in running:
            headings.append(Heading(at, end, block.level))
        bounds[block.page] = (bounds.get(block.page, (at, at))[0], end)
        at = end + 2
    spans = []
    last = 0
    for number in range(1, len(pages) + 1):
        start, last = bounds.get(number, (last, last))  # an empty page is an empty span
        spans.append(Page(number, start, last))
    return "\n\n".join(block.text for block in blocks), tuple(headings), tuple(spans)


Style = tuple[float, bool]


def _levels(pages: list[list[Line]]) -> dict[Style, int]:
    """The heading level of each style that is clearly larger or bolder than the body's."""
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
    """The median distance between lines, in type sizes."""
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
    """Whether a new block begins with this line."""
    if levels.get((before.size, before.bold)) != levels.get((line.size, line.bold)):
        return True
    if before.hyphen:
        return False
    step = line.down - before.down
    size = max(line.size, before.size)
    if step < -size:  # the next column: a sentence may go on in it
        return _SENTENCE_END.search(before.text) is not None
    return step > PARAGRAPH_GAP * usual * size


def _join(lines: list[Line]) -> str:
    """Lines with their line ends; a hyphenated word is made whole where a small letter follows."""
    pieces = [lines[0].text]
    for before, line in pairwise(lines):
        if not before.hyphen:
            pieces.append("\n")
        elif not line.text[0].islower():
            pieces.append("-\n")
        pieces.append(line.text)
    return "".join(pieces)


def _heading_level(lines: list[Line], levels: dict[Style, int]) -> int:
    text = _join(lines)
    if len(text) > MAX_HEADING_CHARS or len(lines) > MAX_HEADING_LINES:
        return BODY
    if not _WORD.search(text) or text[-1] in ".,;:":
        return BODY
    return levels.get((lines[0].size, lines[0].bold), BODY)


def _running_heads(blocks: Iterable[Block]) -> set[str]:
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
