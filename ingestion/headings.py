"""Lines of plain text that read like headings. Careful: a wrong heading is worse than none."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ingestion.parts import Heading

MAX_CHARS = 120
MAX_WORDS_ALONE = 10
"""Words of an unnumbered heading."""

MIN_PARAGRAPH = 40
"""Characters of the line after a heading in title case: less is a list or an address."""

Kind = Literal["hash", "korean", "decimal", "roman", "letter", "caps", "title"]

_LINE = re.compile(r"[^\n]+")
_HASH = re.compile(r"(#{1,6})[ \t]+\S")
_KOREAN = re.compile(r"제\s?\d+\s?(편|장|절|관|조)(?:의\s?\d+)?(?=\s|\(|\[|$)")
_KOREAN_LEVELS = {"편": 1, "장": 2, "절": 3, "관": 4, "조": 5}
_DECIMAL = re.compile(r"(\d{1,3}(?:\.\d{1,3}){0,5})(\.?)[ \t]+(?=[^\W\d_])")
_ROMAN = re.compile(r"([IVX]{1,6})\.[ \t]+(?=[^\W\d_])")
_LETTER = re.compile(r"(?:Appendix[ \t]+)?([A-Z])\.[ \t]+(?=[^\W\d_])")
_CONTENTS = re.compile(r"\.{3,}|(?:\. ){3,}|[ \t]{3,}\d+$")
_SENTENCE = re.compile(r"[.,;:!?。][\"'”’)]*$|다\.?$|요\.?$")
_CAPS = re.compile(r"[A-Z][A-Z0-9 ,&'’()/–-]*[A-Z0-9)]")
_SMALL_WORDS = {
    "a", "an", "and", "as", "at", "by", "for", "from", "in", "into", "of", "on", "or", "the", "to",
    "vs", "with",
}  # fmt: skip
_DIGITS = {"I": 1, "V": 5, "X": 10}


@dataclass(frozen=True)
class _Found:
    start: int
    end: int
    kind: Kind
    number: tuple[int, ...]


def find_headings(text: str) -> list[Heading]:
    """Numbered, Korean, `#` and free-standing headings, with levels; linear in the text.

    Numbers must count up from 1, so that a list item, a date or a quoted number is none.
    """
    found = list(_candidates(text))
    numbered = _counting(found)
    if len(numbered) >= 2:
        first, last = numbered[0].start, numbered[-1].start
        # Between numbered headings a free-standing line is a caption or a label.
        free = [f for f in found if _free(f) and not first < f.start < last]
    else:
        numbered, free = [], [f for f in found if _free(f)]
    kinds = {f.kind for f in (*numbered, *free)}
    headings = [Heading(f.start, f.end, _level(f, kinds)) for f in (*numbered, *free)]
    return sorted(headings, key=lambda h: h.start)


def _candidates(text: str) -> Iterator[_Found]:
    """Lines that look like a heading by themselves and by the lines around them."""
    lines = _LINE.finditer(text)
    before_end = -2  # where the line before ended: two line ends between make a blank line
    line = next(lines, None)
    while line is not None:
        after = next(lines, None)
        start, end = line.span()
        if end - start <= MAX_CHARS and not line[0].isspace():
            alone = start - before_end > 1 or start == 0
            followed = after is None or after.start() - end > 1
            following = "" if after is None else after[0][: MIN_PARAGRAPH + 1].strip()
            found = _read(line[0].rstrip(), alone, followed, following)
            if found is not None:
                kind, number = found
                yield _Found(start, start + len(line[0].rstrip()), kind, number)
        if not line[0].isspace():
            before_end = end
        line = after


def _read(
    line: str, alone: bool, followed: bool, following: str
) -> tuple[Kind, tuple[int, ...]] | None:
    """The kind and number of a heading; `alone`: a blank line before, `followed`: one after."""
    if match := _HASH.match(line):
        return "hash", (len(match[1]),)
    if match := _KOREAN.match(line):
        # 제3조(목적) opens its line; 제3조에 따라 or 제3조 제1항의 … goes on as a sentence
        return ("korean", (_KOREAN_LEVELS[match[1]],)) if _korean_heading(line, match) else None
    if not alone or not followed or _CONTENTS.search(line) or _SENTENCE.search(line):
        return None
    if match := _DECIMAL.match(line):
        number = tuple(int(part) for part in match[1].split("."))
        return ("decimal", number) if match[2] or len(number) > 1 else None
    if match := _ROMAN.match(line):
        return "roman", (_value(match[1]),)
    if match := _LETTER.match(line):
        return "letter", (ord(match[1]) - 64,)
    return _read_free(line, following)


def _korean_heading(line: str, match: re.Match[str]) -> bool:
    rest = line[match.end() :].strip()
    if match[1] == "조":
        return not rest or rest[0] in "(["
    return len(rest) <= 40 and not _SENTENCE.search(rest)


def _read_free(line: str, following: str) -> tuple[Kind, tuple[int, ...]] | None:
    words = line.split()
    if len(words) > MAX_WORDS_ALONE or not following:
        return None
    if _CAPS.fullmatch(line) and any(len(w) >= 4 and w.isalpha() for w in words):
        return "caps", ()
    names = [w for w in words if w.lower() not in _SMALL_WORDS]
    if (
        len(names) >= 2
        and len(following) >= MIN_PARAGRAPH
        and all(w[0].isupper() and w.replace("-", "").replace("’", "").isalpha() for w in names)
    ):
        return "title", ()
    return None


def _free(found: _Found) -> bool:
    return found.kind in ("caps", "title")


def _counting(found: list[_Found]) -> list[_Found]:
    """The numbered ones that go on where their kind stopped: 1, 1.1, 1.2, 2; I, II; A, B.

    `#` and Korean headings state their level and need not count.
    """
    kept: list[_Found] = []
    at: dict[Kind, tuple[int, ...]] = {"decimal": (0,), "roman": (0,), "letter": (0,)}
    for candidate in found:
        if candidate.kind in ("hash", "korean"):
            kept.append(candidate)
        elif candidate.kind == "roman" and _follows(at["letter"], letter := _as_letter(candidate)):
            at["letter"] = letter  # `I.` after `H.`
            kept.append(_Found(candidate.start, candidate.end, "letter", letter))
        elif candidate.kind in at and _follows(at[candidate.kind], candidate.number):
            at[candidate.kind] = candidate.number
            kept.append(candidate)
            if candidate.kind == "roman":
                at["letter"] = (0,)  # A., B. start again under each
    return kept


def _as_letter(found: _Found) -> tuple[int, ...]:
    return {1: (9,), 5: (22,), 10: (24,)}.get(found.number[0], (0,))  # I, V, X


def _follows(before: tuple[int, ...], number: tuple[int, ...]) -> bool:
    """Whether `number` is the next one: a deeper 1, or one more at this depth or a higher one."""
    depth = len(number)
    if depth > len(before):
        return number == (*before, 1) and before != (0,)
    return number[:-1] == before[: depth - 1] and number[-1] == before[depth - 1] + 1


def _level(found: _Found, kinds: set[Kind]) -> int:
    """Roman above letters above decimals, where a text has several; free ones on top."""
    if found.kind in ("hash", "korean"):
        return found.number[0]
    if found.kind == "letter":
        return 1 + ("roman" in kinds)
    if found.kind == "decimal":
        return len(found.number) + ("roman" in kinds) + ("letter" in kinds and "roman" in kinds)
    return 2 if found.kind == "title" and "caps" in kinds else 1


def _value(roman: str) -> int:
    values = [_DIGITS[c] for c in roman]
    return sum(-v if v < after else v for v, after in zip(values, [*values[1:], 0], strict=True))
