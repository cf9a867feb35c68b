"""Divides a text into sections by the format's headings, or by lines that look like headings."""

import re
from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate

from callslip.ingestion.sections.headings import find_headings, find_numbered
from callslip.ingestion.values import ExtractedText, Heading, Section
from callslip.languages import DEFAULT, Codes

MAX_HEADING = 200
"""The maximum number of characters of a section's heading; the rest is left out."""

MAX_LABEL = 80
"""The maximum number of characters of a heading in a path."""

FEW_HEADINGS = 2
"""If the format marks fewer headings (only a title), the text is searched for others."""

MIN_NUMBERED = 3
"""The minimum number of numbered lines that replace the headings of a PDF, because large type can
also be a caption."""

PDF = "application/pdf"
"""The format whose headings are bookmarks or guessed from type; other formats mark headings."""

_TYPE_SIGNS = re.compile(r"\*\*|__|`|^#+")


def sectionize(extracted: ExtractedText, codes: Codes = DEFAULT) -> list[Section]:
    """Cut the text at its headings; the sections tile the text in order.

    Text before the first heading is a section of level 0 with an empty heading and path. `level` is
    the depth in the tree, without the levels that the format skips. The time is linear in the text.
    """
    text = extracted.text
    headings = _headings(extracted, codes)
    if not headings:
        return [Section("", "", 0, 0, 0, len(text), None)]
    starts = [text.rfind("\n", 0, h.start) + 1 for h in headings]
    sections: list[Section] = []
    if text[: starts[0]].strip():
        sections.append(Section("", "", 0, 0, 0, starts[0], None))
    else:
        starts[0] = 0
    open_sections: list[tuple[int, str]] = []
    paths = _Paths()
    for heading, start, end in zip(headings, starts, [*starts[1:], len(text)], strict=True):
        while open_sections and open_sections[-1][0] >= heading.level:
            open_sections.pop()
        parent = open_sections[-1][1] if open_sections else None
        words = _words(text[heading.start : min(heading.end, heading.start + 2 * MAX_HEADING)])
        path = paths.unique(parent, _label(words))
        open_sections.append((heading.level, path))
        sections.append(Section(path, words, len(open_sections), len(sections), start, end, parent))
    return sections


def _headings(extracted: ExtractedText, codes: Codes) -> list[Heading]:
    """Return the format's headings outside of tables and code; if they are too few, find others.

    In a PDF, numbered lines replace the headings among them if most of these lines are new.
    """
    text, blocks = extracted.text, extracted.blocks
    ordered = sorted(blocks, key=lambda b: b.start)
    starts, ends = [b.start for b in ordered], [0, *accumulate((b.end for b in ordered), max)]
    own = _in_order(h for h in extracted.headings if ends[bisect_right(starts, h.start)] <= h.start)
    if len(own) < FEW_HEADINGS:
        return _in_order([*own, *_below(own, find_headings(text, blocks, codes))])
    if extracted.media_type != PDF:
        return own
    numbered = find_numbered(text, blocks, codes)
    known = {_words(text[h.start : h.end]) for h in own}
    new = [h for h in numbered if _words(text[h.start : h.end]) not in known]
    if len(numbered) < MIN_NUMBERED or 2 * len(new) <= len(numbered):
        return own
    first, last = numbered[0].start, numbered[-1].start
    return _in_order([*numbered, *(h for h in own if not first <= h.start <= last)])


def _in_order(headings: Iterable[Heading]) -> list[Heading]:
    """Return the headings by position, without those that are empty or overlap another one."""
    ordered: list[Heading] = []
    for heading in sorted(headings, key=lambda h: h.start):
        if heading.end > heading.start and (not ordered or heading.start >= ordered[-1].end):
            ordered.append(heading)
    return ordered


def _below(titles: list[Heading], guessed: list[Heading]) -> list[Heading]:
    """Return the headings found by patterns, at levels below the titles that the format marks."""
    depth = max((title.level for title in titles), default=0)
    return [Heading(h.start, h.end, h.level + depth) for h in guessed]


def _words(heading: str) -> str:
    """Return a heading on one line, without Markdown's signs for emphasis and headings."""
    return " ".join(_TYPE_SIGNS.sub("", heading).split())[:MAX_HEADING]


def _label(words: str) -> str:
    """Return a heading as one part of a path: in lower case, without a slash."""
    return words.lower().replace("/", "-")[:MAX_LABEL].strip("# ") or "-"


class _Paths:
    """Gives each section a path that no other one has."""

    def __init__(self) -> None:
        self._used: dict[str, int] = {}

    def unique(self, parent: str | None, label: str) -> str:
        path = label if parent is None else f"{parent}/{label}"
        count = self._used.get(path, 0) + 1
        self._used[path] = count
        if count == 1:
            return path
        while (numbered := f"{path}#{count}") in self._used:  # a heading itself may end in `#2`
            count += 1
        self._used[path] = count
        self._used[numbered] = 1
        return numbered
