"""Cuts markup out of an extracted text; all spans follow the text."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import NamedTuple

from callslip.ingestion.values import Block, ExtractedText, Heading, Link


class Cut(NamedTuple):
    """`text[start:end]` becomes `instead`."""

    start: int
    end: int
    instead: str = ""


def cut(raw: ExtractedText, cuts: Iterable[Cut]) -> ExtractedText:
    """Return the text with these cuts, and its headings, blocks and links with adjusted spans.

    Of overlapping cuts the first one counts. A line that the cuts leave blank is removed too.
    Headings that become empty are left out.
    """
    chosen = _with_lines(raw.text, _apart(cuts))
    if not chosen:
        return raw
    pieces, at = [], 0
    for each in chosen:
        pieces += [raw.text[at : each.start], each.instead]
        at = each.end
    text = "".join([*pieces, raw.text[at:]])
    moved = _Moved(chosen)
    headings = (
        _stripped(text, replace(h, start=moved.to(h.start), end=moved.to(h.end)))
        for h in raw.headings
    )
    return replace(
        raw,
        text=text,
        headings=tuple(heading for heading in headings if heading.end > heading.start),
        blocks=tuple(
            Block(moved.to(b.start), moved.to(b.end), b.kind, moved.to(b.header))
            for b in raw.blocks
        ),
        links=tuple(
            Link(start, end, link.target)
            for link in raw.links
            if (start := moved.to(link.start)) < (end := moved.to(link.end))
        ),
    )


class Spans:
    """Spans of a text, in order and apart."""

    def __init__(self, spans: Iterable[tuple[int, int]]) -> None:
        self.all = list(spans)
        self._starts = [start for start, _ in self.all]

    def has(self, offset: int) -> bool:
        """Whether a span has this offset."""
        before = bisect_right(self._starts, offset)
        return before > 0 and offset < self.all[before - 1][1]

    def cross(self, cut: Cut) -> bool:
        """Whether a cut overlaps a span and does not contain it."""
        at = max(0, bisect_right(self._starts, cut.start) - 1)
        while at < len(self.all) and self.all[at][0] < cut.end:
            start, end = self.all[at]
            if end > cut.start and not cut.start <= start < end <= cut.end:
                return True
            at += 1
        return False


class _Moved:
    """Where the offsets of a text are after its cuts, which are in order and apart."""

    def __init__(self, cuts: Sequence[Cut]) -> None:
        self._starts = [each.start for each in cuts]
        self._ends = [each.end for each in cuts]
        shrunk = (each.end - each.start - len(each.instead) for each in cuts)
        self._shrunk = [0, *accumulate(shrunk)]

    def to(self, offset: int) -> int:
        """The new offset; one within a cut becomes the end of the cut's replacement."""
        before = bisect_right(self._ends, offset)
        if before < len(self._ends) and self._starts[before] < offset:
            offset, before = self._ends[before], before + 1
        return offset - self._shrunk[before]


def _apart(cuts: Iterable[Cut]) -> list[Cut]:
    chosen: list[Cut] = []
    for each in sorted(cuts, key=lambda c: (c.start, -c.end)):
        if each.end > each.start and (not chosen or each.start >= chosen[-1].end):
            chosen.append(each)
    return chosen


def _with_lines(text: str, cuts: Sequence[Cut]) -> list[Cut]:
    """Join the cuts of each line that they leave blank to one cut of the whole line."""
    made: list[Cut] = []
    at = 0
    while at < len(cuts):
        start = text.rfind("\n", 0, cuts[at].start) + 1
        after, left = at, [text[start : cuts[at].start]]
        while True:
            stop = text.find("\n", max(cuts[after].start, cuts[after].end - 1))
            stop = len(text) if stop < 0 else stop
            left.append(cuts[after].instead)
            if after + 1 == len(cuts) or cuts[after + 1].start > stop:
                break
            left.append(text[cuts[after].end : cuts[after + 1].start])
            after += 1
        left.append(text[min(cuts[after].end, stop) : stop])
        whole = at == after and cuts[at].start == start and cuts[at].end > stop
        if whole or "".join(left).strip():
            made += cuts[at : after + 1]
        else:
            made.append(Cut(start, min(stop + 1, len(text))))
        at = after + 1
    return made


def _stripped(text: str, heading: Heading) -> Heading:
    """The heading without white space at its ends, which a cut may have left."""
    words = text[heading.start : heading.end]
    start = heading.start + len(words) - len(words.lstrip())
    return replace(heading, start=start, end=start + len(words.strip()))
