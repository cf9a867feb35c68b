"""Lines of plain text that read like headings. Careful: a wrong heading is worse than none."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ingestion.heading_lines import MIN_PARAGRAPH, Kind, Line, Reading, read
from ingestion.parts import Block, Heading

MAX_CHARS = 120

MIN_OUTDENTED = 3
"""Lines that stand out to the left of their text, as in old RFCs, and others in title case: fewer
are no outline."""

_LINE = re.compile(r"[^\n]+")
_AT_THE_END = ("annex", "appendix", "schedule")


@dataclass(frozen=True)
class _Found:
    start: int
    end: int
    kind: Kind
    number: tuple[int, ...]
    name: str = ""


def find_headings(text: str, blocks: Sequence[Block] = ()) -> list[Heading]:
    """Numbered, Korean, `#` and free-standing headings, with levels; linear in the text.

    Numbers must count up from 1, so that a list item, a date or a quoted number is none. Nothing
    inside a block is one.
    """
    numbered, free = _found(text, blocks)
    if numbered:
        first, last = numbered[0].start, numbered[-1].start
        # Between numbered headings a free-standing line is a caption or a label.
        free = [f for f in free if not first < f.start < last]
    return _levelled([*numbered, *free])


def find_numbered(text: str, blocks: Sequence[Block] = ()) -> list[Heading]:
    """Those of them that count or state their level; none where there are not two."""
    return _levelled(_found(text, blocks)[0])


def _found(text: str, blocks: Sequence[Block]) -> tuple[list[_Found], list[_Found]]:
    """The numbered and the free-standing ones."""
    candidates = list(_outside(blocks, _candidates(text)))
    numbered = _counting(candidates)
    free = [f for f in candidates if f.kind in ("caps", "title", "outdented")]
    if sum(f.kind != "caps" for f in free) < MIN_OUTDENTED:
        free = [f for f in free if f.kind != "outdented"]
    return numbered if len(numbered) >= 2 else [], free


def _outside(blocks: Sequence[Block], found: Iterable[_Found]) -> Iterator[_Found]:
    spans = sorted((block.start, block.end) for block in blocks)
    starts = [start for start, _ in spans]
    for candidate in found:
        at = bisect_right(starts, candidate.start) - 1
        if at < 0 or candidate.start >= spans[at][1]:
            yield candidate


def _candidates(text: str) -> Iterator[_Found]:
    """Lines that look like a heading by themselves and by the lines around them."""
    lines = _LINE.finditer(text)
    before_end = -2  # where the line before ended: two line ends between make a blank line
    line = next(lines, None)
    while line is not None:
        after = next(lines, None)
        start, end = line.span()
        if end - start <= MAX_CHARS and not line[0].isspace():
            found = read(
                Line(
                    line[0].rstrip(),
                    alone=start - before_end > 1 or start == 0,
                    followed=after is None or after.start() - end > 1,
                    following="" if after is None else after[0][: 2 * MIN_PARAGRAPH],
                )
            )
            if found is not None:
                yield _placed(found, start)
        if not line[0].isspace():
            before_end = end
        line = after


def _placed(found: Reading, start: int) -> _Found:
    return _Found(start, start + found.length, found.kind, found.number, found.name)


def _counting(found: list[_Found]) -> list[_Found]:
    """The numbered ones that go on where their kind stopped: 1, 1.1, 1.2, 2; I, II; A, B.

    `#`, Korean and named headings (`Part 2`) need not count, and numbers may start again under one.
    """
    kept: list[_Found] = []
    at: dict[Kind, tuple[int, ...]] = {"decimal": (0,), "roman": (0,), "letter": (0,)}
    for candidate in found:
        if candidate.kind in ("hash", "korean", "named"):
            kept.append(candidate)
        elif candidate.kind == "roman" and _follows(at["letter"], letter := _as_letter(candidate)):
            at["letter"] = letter  # `I.` after `H.`
            kept.append(_Found(candidate.start, candidate.end, "letter", letter))
        elif candidate.kind in at and (
            _follows(at[candidate.kind], candidate.number) or _anew(candidate, kept)
        ):
            at[candidate.kind] = candidate.number
            kept.append(candidate)
            if candidate.kind == "roman":
                at["letter"] = (0,)  # A., B. start again under each
    return kept


def _anew(found: _Found, kept: Sequence[_Found]) -> bool:
    return found.number == (1,) and bool(kept) and kept[-1].kind == "named"


def _as_letter(found: _Found) -> tuple[int, ...]:
    return {1: (9,), 5: (22,), 10: (24,)}.get(found.number[0], (0,))  # I, V, X


def _follows(before: tuple[int, ...], number: tuple[int, ...]) -> bool:
    """Whether `number` is the next one: a deeper 1, or one more at this depth or a higher one."""
    depth = len(number)
    if depth > len(before):
        return number == (*before, 1) and before != (0,)
    return number[:-1] == before[: depth - 1] and number[-1] == before[depth - 1] + 1


def _levelled(found: Sequence[_Found]) -> list[Heading]:
    kinds = {f.kind for f in found}
    names = [n for n in dict.fromkeys(f.name for f in found) if n and n not in _AT_THE_END]
    headings = [Heading(f.start, f.end, _level(f, kinds, names)) for f in found]
    return sorted(headings, key=lambda h: h.start)


def _level(found: _Found, kinds: set[Kind], names: Sequence[str]) -> int:
    """Named above roman above letters above decimals, where a text has several; free ones on top.

    Of the named ones (`names`: parts, chapters) the first to appear is the highest.
    """
    roman, letter = "roman" in kinds, "letter" in kinds
    match found.kind:
        case "hash" | "korean":
            return found.number[0]
        case "named":
            return 1 + (names.index(found.name) if found.name in names else 0)
        case "roman":
            return 1 + len(names)
        case "letter":
            return 1 + len(names) + roman
        case "decimal":
            return len(names) + len(found.number) + roman + (letter and roman)
        case "title":
            return 2 if "caps" in kinds else 1
        case _:
            return 1
