"""The text to sections: its own headings, or else lines that read like headings."""

import re
from collections.abc import Iterable

from ingestion.headings import find_headings, find_numbered
from ingestion.parts import ExtractedText, Heading, Section

MAX_HEADING = 200
"""Characters of a heading that are kept."""

MAX_LABEL = 80
"""Characters of a heading that enter a path."""

FEW_HEADINGS = 2
"""With fewer headings of its own (a title alone) a text is searched for more."""

MIN_NUMBERED = 3
"""Numbered lines that are believed rather than the type of a page, which may be a caption's."""

PDF = "application/pdf"
"""Its headings are guessed from type, or are bookmarks; other formats state theirs."""

_TYPE_SIGNS = re.compile(r"\*\*|__|`|^#+")


def sectionize(extracted: ExtractedText) -> list[Section]:
    """Cut the text at its headings; the sections tile it in order.

    What stands before the first heading is a section of level 0 with an empty heading and path.
    `level` is the depth in the tree, whatever levels the format skipped. Linear in the text.
    """
    text = extracted.text
    headings = _headings(extracted)
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


def _headings(extracted: ExtractedText) -> list[Heading]:
    """The format's own, without those inside a table or code; where these say little, patterns."""
    text, blocks = extracted.text, extracted.blocks
    own = _in_order(
        h for h in extracted.headings if not any(b.start <= h.start < b.end for b in blocks)
    )
    if len(own) < FEW_HEADINGS:
        return _in_order([*own, *_below(own, find_headings(text, blocks))])
    if extracted.media_type != PDF:
        return own
    numbered = find_numbered(text, blocks)
    known = {_words(text[h.start : h.end]) for h in own}
    new = [h for h in numbered if _words(text[h.start : h.end]) not in known]
    if len(numbered) < MIN_NUMBERED or 2 * len(new) <= len(numbered):
        return own
    first, last = numbered[0].start, numbered[-1].start
    return _in_order([*numbered, *(h for h in own if not first <= h.start <= last)])


def _in_order(headings: Iterable[Heading]) -> list[Heading]:
    """By position, at most one on a line or overlapping another."""
    kept: list[Heading] = []
    for heading in sorted(headings, key=lambda h: h.start):
        if heading.end > heading.start and (not kept or heading.start >= kept[-1].end):
            kept.append(heading)
    return kept


def _below(titles: list[Heading], found: list[Heading]) -> list[Heading]:
    """Headings found by pattern, under the title that the format names."""
    depth = max((title.level for title in titles), default=0)
    return [Heading(h.start, h.end, h.level + depth) for h in found]


def _words(heading: str) -> str:
    """A heading on one line, without Markdown's signs for type."""
    return " ".join(_TYPE_SIGNS.sub("", heading).split())[:MAX_HEADING]


def _label(words: str) -> str:
    """A heading as one step of a path: small letters, no slash."""
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
        while (numbered := f"{path}#{count}") in self._used:  # a heading may end in `#2` itself
            count += 1
        self._used[path] = count
        self._used[numbered] = 1
        return numbered
