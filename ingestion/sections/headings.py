"""Finds headings in plain text. The rules are strict: a wrong heading is worse than none."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from callslip.ingestion.sections.heading_lines import MIN_PARAGRAPH, Kind, Line, Reading, read
from callslip.ingestion.values import Block, Heading
from callslip.languages import DEFAULT, Codes, languages

MAX_CHARS = 120

MIN_OUTDENTED = 3
"""The minimum number of outdented lines (further left than their text, as in old RFCs) and lines in
title case together. With fewer of them, outdented lines are not headings."""

_LINE = re.compile(r"[^\n]+")


@dataclass(frozen=True)
class _Candidate:
    start: int
    end: int
    kind: Kind
    number: tuple[int, ...]
    name: str = ""


def find_headings(text: str, blocks: Sequence[Block] = (), codes: Codes = DEFAULT) -> list[Heading]:
    """Find numbered, levelled (`제3조`), `#` and free-standing headings; the time is linear.

    Numbers must count up from 1, so that a list item, a date or a quoted number is not a heading.
    No line inside a block is a heading.
    """
    numbered, free = _candidates_of(text, blocks, codes)
    if numbered:
        first, last = numbered[0].start, numbered[-1].start
        # Between numbered headings a free-standing line is a caption or a label.
        free = [f for f in free if not first < f.start < last]
    return _levelled([*numbered, *free], codes)


def find_numbered(text: str, blocks: Sequence[Block] = (), codes: Codes = DEFAULT) -> list[Heading]:
    """Find only the headings that have numbers or state their level; none if there is only one."""
    return _levelled(_candidates_of(text, blocks, codes)[0], codes)


def _candidates_of(
    text: str, blocks: Sequence[Block], codes: Codes
) -> tuple[list[_Candidate], list[_Candidate]]:
    """Return the numbered and the free-standing candidates."""
    candidates = list(_outside(blocks, _candidates(text, codes)))
    numbered = _counting(candidates)
    free = [f for f in candidates if f.kind in ("caps", "title", "outdented")]
    if sum(f.kind != "caps" for f in free) < MIN_OUTDENTED:
        free = [f for f in free if f.kind != "outdented"]
    return numbered if len(numbered) >= 2 else [], free


def _outside(blocks: Sequence[Block], candidates: Iterable[_Candidate]) -> Iterator[_Candidate]:
    spans = sorted((block.start, block.end) for block in blocks)
    starts = [start for start, _ in spans]
    for candidate in candidates:
        at = bisect_right(starts, candidate.start) - 1
        if at < 0 or candidate.start >= spans[at][1]:
            yield candidate


def _candidates(text: str, codes: Codes) -> Iterator[_Candidate]:
    """Yield the lines that look like headings, judged by the line and the lines around it."""
    lines = _LINE.finditer(text)
    before_end = -2  # end of the previous line: two line ends in between make a blank line
    line = next(lines, None)
    while line is not None:
        after = next(lines, None)
        start, end = line.span()
        if end - start <= MAX_CHARS and not line[0].isspace():
            reading = read(
                Line(
                    line[0].rstrip(),
                    alone=start - before_end > 1 or start == 0,
                    followed=after is None or after.start() - end > 1,
                    following="" if after is None else after[0][: 2 * MIN_PARAGRAPH],
                ),
                codes,
            )
            if reading is not None:
                yield _placed(reading, start)
        if not line[0].isspace():
            before_end = end
        line = after


def _placed(reading: Reading, start: int) -> _Candidate:
    return _Candidate(
        start,
        start + reading.length,
        reading.kind,
        reading.number,
        reading.name,
    )


def _counting(candidates: list[_Candidate]) -> list[_Candidate]:
    """Return the candidates that continue the numbers of their kind: 1, 1.1, 1.2, 2; I, II; A, B.

    `#`, levelled and named headings (`Part 2`) need not count up. Numbers may start again at 1
    after a named heading, letters after a Roman number.
    """
    counted: list[_Candidate] = []
    at: dict[Kind, tuple[int, ...]] = {"decimal": (0,), "roman": (0,), "letter": (0,)}
    for candidate in candidates:
        if candidate.kind in ("hash", "levelled", "named"):
            counted.append(candidate)
        elif candidate.kind == "roman" and _follows(at["letter"], letter := _as_letter(candidate)):
            at["letter"] = letter  # `I.` after `H.`
            counted.append(_Candidate(candidate.start, candidate.end, "letter", letter))
        elif candidate.kind in at and (
            _follows(at[candidate.kind], candidate.number) or _anew(candidate, counted)
        ):
            at[candidate.kind] = candidate.number
            counted.append(candidate)
            if candidate.kind == "roman":
                at["letter"] = (0,)  # letters start again after each
    return counted


def _anew(candidate: _Candidate, counted: Sequence[_Candidate]) -> bool:
    return candidate.number == (1,) and bool(counted) and counted[-1].kind == "named"


def _as_letter(candidate: _Candidate) -> tuple[int, ...]:
    return {1: (9,), 5: (22,), 10: (24,)}.get(candidate.number[0], (0,))  # I, V, X


def _follows(before: tuple[int, ...], number: tuple[int, ...]) -> bool:
    """Whether `number` follows: 1 one level deeper, or one more at the same or a higher level."""
    depth = len(number)
    if depth > len(before):
        return number == (*before, 1) and before != (0,)
    return number[:-1] == before[: depth - 1] and number[-1] == before[depth - 1] + 1


def _levelled(candidates: Sequence[_Candidate], codes: Codes) -> list[Heading]:
    kinds = {f.kind for f in candidates}
    trailing = {name for language in languages(codes) for name in language.headings.trailing}
    names = [n for n in dict.fromkeys(f.name for f in candidates) if n and n not in trailing]
    headings = [Heading(f.start, f.end, _level(f, kinds, names)) for f in candidates]
    return sorted(headings, key=lambda h: h.start)


def _level(candidate: _Candidate, kinds: set[Kind], names: Sequence[str]) -> int:
    """Return the level of a heading in a text with headings of these kinds.

    Named headings are above Roman numbers, these above letters, and these above decimals.
    Free-standing headings have level 1, those in title case level 2 if the text also has capitals.
    `names` are the units of named headings (parts, chapters); the first to appear is the highest.
    """
    roman, letter = "roman" in kinds, "letter" in kinds
    match candidate.kind:
        case "hash" | "levelled":
            return candidate.number[0]
        case "named":
            return 1 + (names.index(candidate.name) if candidate.name in names else 0)
        case "roman":
            return 1 + len(names)
        case "letter":
            return 1 + len(names) + roman
        case "decimal":
            return len(names) + len(candidate.number) + roman + (letter and roman)
        case "title":
            return 2 if "caps" in kinds else 1
        case _:
            return 1
