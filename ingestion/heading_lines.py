"""What a single line says of itself: the kind and number of a heading, or that it is none."""

import re
from dataclasses import dataclass
from typing import Literal

MAX_WORDS_ALONE = 10
"""Words of an unnumbered heading."""

MAX_WORDS_NAMED = 14
"""Words of `Chapter IV` and its title."""

MIN_PARAGRAPH = 40
"""Characters of the line after a heading in title case: less is a list or an address."""

MIN_INDENTED = 20
"""Characters of the indented line after a heading that stands out to the left."""

MAX_SUPPLEMENT = 60
"""Characters of the line that opens a statute's supplementary provisions or tables."""

Kind = Literal[
    "hash", "korean", "named", "decimal", "roman", "letter", "caps", "title", "outdented"
]

_HASH = re.compile(r"(#{1,6})[ \t]+\S")
_KOREAN = re.compile(r"제\s?\d+\s?(편|장|절|관|조|항)(?:의\s?\d+)?(?=\s|\(|\[|$)")
_KOREAN_LEVELS = {"편": 1, "장": 2, "절": 3, "관": 4, "조": 5, "항": 6}
_SUPPLEMENT = re.compile(
    r"부\s?칙(?=\s*(?:[<〈(\[]|$))|\[?별표(?:\s?\d+(?:의\s?\d+)?)?\]?(?=\s|\(|$)"
)
_IN_BRACKETS = re.compile(r"\s?[(\[][^()\[\]]*[)\]]")
_NAMED = re.compile(
    r"(book|title|part|division|chapter|subchapter|subpart|rule|article|section|annex|appendix"
    r"|schedule)[ \t]+(?:\d{1,3}|[IVXLC]{1,7}|[A-Z])(?=[.:–—-]?(?:[ \t]|$))",
    re.I,
)
_DECIMAL = re.compile(r"(?:§[ \t]?)?(\d{1,3}(?:\.\d{1,3}){0,5})(\.?)[ \t]+(?=([^\W\d_]))")
_ROMAN = re.compile(r"([IVX]{1,6})\.[ \t]+(?=[^\W\d_])")
_LETTER = re.compile(r"([A-Z])\.[ \t]+(?=[^\W\d_])")
_CONTENTS = re.compile(r"\.{3,}|(?:\. ){3,}|[ \t]{3,}\d+$")
_COLUMNS = re.compile(r"\S[ \t]{3,}\S")
_SENTENCE = re.compile(r"[.,;:!?。][\"'”’)]*$|다\.?$|요\.?$")
_SENTENCE_BUT_COLON = re.compile(r"[.,;!?。][\"'”’)]*$|다\.?$|요\.?$")
_CAPS = re.compile(r"[A-Z][A-Z0-9 ,&'’()/–-]*[A-Z0-9)]")
_SMALL_WORDS = {
    "a", "an", "and", "as", "at", "by", "for", "from", "in", "into", "of", "on", "or", "the", "to",
    "vs", "with",
}  # fmt: skip
_DIGITS = {"I": 1, "V": 5, "X": 10}


@dataclass(frozen=True)
class Line:
    """A line that begins at the margin, without the blanks at its end.

    `alone` and `followed`: a blank line before and after it. `following` is how the next line that
    is not blank begins.
    """

    text: str
    alone: bool
    followed: bool
    following: str


@dataclass(frozen=True)
class Reading:
    """A heading: its kind, its number or stated level, and what is numbered (`chapter`).

    `length` is how much of its line it takes: `제1조(목적)` may stand before its text.
    """

    kind: Kind
    length: int
    number: tuple[int, ...] = ()
    name: str = ""


def read(line: Line) -> Reading | None:
    """What a line looks like by itself and by the lines around it."""
    text = line.text
    if match := _HASH.match(text):
        return Reading("hash", len(text), (len(match[1]),))
    if match := _KOREAN.match(text):
        return _read_korean(text, match)
    if match := _SUPPLEMENT.match(text):
        long = len(text) > MAX_SUPPLEMENT or _SENTENCE.search(text)
        return None if long else Reading("korean", len(text), (1,))
    if not line.alone or not line.followed or _CONTENTS.search(text):
        return None
    if match := _DECIMAL.match(text):
        number = tuple(int(part) for part in match[1].split("."))
        plain = match[2] or len(number) > 1 or not match[3].islower()
        sentence = _SENTENCE_BUT_COLON.search(text)
        return Reading("decimal", len(text), number) if plain and not sentence else None
    if _SENTENCE.search(text):
        return None
    return _read_lettered(text) or _read_free(line)


def _read_korean(text: str, match: re.Match[str]) -> Reading | None:
    """`제3조(목적)` opens its line; `제3조에 따라` or `제3조 제1항의 …` goes on as a sentence."""
    level = (_KOREAN_LEVELS[match[1]],)
    rest = text[match.end() :].strip()
    if match[1] in "조항":
        title = _IN_BRACKETS.match(text, match.end())
        if rest and not title:
            return None
        return Reading("korean", title.end() if title else len(text), level)
    heading = len(rest) <= 40 and not _SENTENCE.search(rest)
    return Reading("korean", len(text), level) if heading else None


def _read_lettered(text: str) -> Reading | None:
    """`Part 2`, `IV.`, `B.`"""
    if (match := _NAMED.match(text)) and match[1][0].isupper():
        few = len(text.split()) <= MAX_WORDS_NAMED
        return Reading("named", len(text), name=match[1].lower()) if few else None
    if match := _ROMAN.match(text):
        return Reading("roman", len(text), (_value(match[1]),))
    if match := _LETTER.match(text):
        return Reading("letter", len(text), (ord(match[1]) - 64,))
    return None


def _read_free(line: Line) -> Reading | None:
    text, following = line.text, line.following.strip()
    words = text.split()
    if len(words) > MAX_WORDS_ALONE or not following:
        return None
    if _CAPS.fullmatch(text) and any(len(w) >= 4 and w.isalpha() for w in words):
        return Reading("caps", len(text))
    names = [w for w in words if w.lower() not in _SMALL_WORDS]
    if (
        len(names) >= 2
        and len(following) >= MIN_PARAGRAPH
        and all(w[0].isupper() and w.replace("-", "").replace("’", "").isalpha() for w in names)
    ):
        return Reading("title", len(text))
    indented = line.following.startswith("  ") and len(following) >= MIN_INDENTED
    if indented and text[0].isupper() and not _COLUMNS.search(text):
        return Reading("outdented", len(text))
    return None


def _value(roman: str) -> int:
    values = [_DIGITS[c] for c in roman]
    return sum(-v if v < after else v for v, after in zip(values, [*values[1:], 0], strict=True))
