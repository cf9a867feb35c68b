"""Decides whether a single line is a heading, and of which kind and number."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from callslip.languages import DEFAULT, Codes, languages
from callslip.languages.contract import Headings

MAX_WORDS_ALONE = 10
"""The maximum number of words of an unnumbered heading."""

MAX_WORDS_NAMED = 14
"""The maximum number of words of `Chapter IV` with its title."""

MIN_PARAGRAPH = 40
"""The minimum length of the line after a heading in title case; a shorter line belongs to a list or
an address."""

MIN_INDENTED = 20
"""The minimum length of the indented line after a heading that begins further to the left."""

MAX_SUPPLEMENT = 60
"""The maximum length of the first line of a statute's supplementary provisions or tables."""

Kind = Literal[
    "hash", "levelled", "named", "decimal", "roman", "letter", "caps", "title", "outdented"
]

_HASH = re.compile(r"(#{1,6})[ \t]+\S")
_IN_BRACKETS = re.compile(r"\s?[(\[][^()\[\]]*[)\]]")
_DECIMAL = re.compile(r"(?:§[ \t]?)?(\d{1,3}(?:\.\d{1,3}){0,5})(\.?)[ \t]+(?=([^\W\d_]))")
_ROMAN = re.compile(r"([IVX]{1,6})\.[ \t]+(?=[^\W\d_])")
_LETTER = re.compile(r"([A-Z])\.[ \t]+(?=[^\W\d_])")
_CONTENTS = re.compile(r"\.{3,}|(?:\. ){3,}|[ \t]{3,}\d+$")
_COLUMNS = re.compile(r"\S[ \t]{3,}\S")
_STOP = re.compile(r"[.,;:!?。][\"'”’)]*$")
_STOP_BUT_COLON = re.compile(r"[.,;!?。][\"'”’)]*$")
_CAPS = re.compile(r"[A-Z][A-Z0-9 ,&'’()/–-]*[A-Z0-9)]")
_DIGITS = {"I": 1, "V": 5, "X": 10}


@dataclass(frozen=True)
class Line:
    """A line that begins at the margin, without the blanks at its end.

    `alone` and `followed`: whether a blank line is before and after it. `following` is the
    beginning of the next line that is not empty.
    """

    text: str
    alone: bool
    followed: bool
    following: str


@dataclass(frozen=True)
class Reading:
    """A heading: its kind, its number or stated level, and the name of its unit (`chapter`).

    `length` is its length in characters: text may follow on the same line, as after `제1조(목적)`.
    """

    kind: Kind
    length: int
    number: tuple[int, ...] = ()
    name: str = ""


def read(line: Line, codes: Codes = DEFAULT) -> Reading | None:
    """Return the heading that a line is, judged by the line and the lines around it, or None."""
    text = line.text
    rules = [language.headings for language in languages(codes)]
    if match := _HASH.match(text):
        return Reading("hash", len(text), (len(match[1]),))
    for rule in rules:
        if match := rule.levelled.match(text):
            return _read_levelled(text, match, rule, rules)
    if any(rule.supplement.match(text) for rule in rules):
        long = len(text) > MAX_SUPPLEMENT or _is_sentence(text, rules)
        return None if long else Reading("levelled", len(text), (1,))
    if not line.alone or not line.followed or _CONTENTS.search(text):
        return None
    if match := _DECIMAL.match(text):
        number = tuple(int(part) for part in match[1].split("."))
        plain = match[2] or len(number) > 1 or not match[3].islower()
        sentence = _is_sentence(text, rules, _STOP_BUT_COLON)
        return Reading("decimal", len(text), number) if plain and not sentence else None
    if _is_sentence(text, rules):
        return None
    return _read_lettered(text, rules) or _read_free(line, rules)


def _is_sentence(text: str, rules: Sequence[Headings], stop: re.Pattern[str] = _STOP) -> bool:
    return bool(stop.search(text)) or any(rule.sentence.search(text) for rule in rules)


def _read_levelled(
    text: str, match: re.Match[str], rule: Headings, rules: Sequence[Headings]
) -> Reading | None:
    """Return a heading for `제3조(목적)`, None for `제3조에 따라` or `제3조 제1항의 …`."""
    level = (rule.levels[match["unit"]],)
    rest = text[match.end() :].strip()
    if match["unit"] in rule.inline:
        title = _IN_BRACKETS.match(text, match.end())
        if rest and not title:
            return None
        return Reading("levelled", title.end() if title else len(text), level)
    heading = len(rest) <= 40 and not _is_sentence(rest, rules)
    return Reading("levelled", len(text), level) if heading else None


def _read_lettered(text: str, rules: Sequence[Headings]) -> Reading | None:
    """Return a heading for a line such as `Part 2`, `IV.` or `B.`, else None."""
    for rule in rules:
        if (match := rule.named.match(text)) and text[0].isupper():
            few = len(text.split()) <= MAX_WORDS_NAMED
            return Reading("named", len(text), name=match["name"].lower()) if few else None
    if match := _ROMAN.match(text):
        return Reading("roman", len(text), (_value(match[1]),))
    if match := _LETTER.match(text):
        return Reading("letter", len(text), (ord(match[1]) - 64,))
    return None


def _read_free(line: Line, rules: Sequence[Headings]) -> Reading | None:
    text, following = line.text, line.following.strip()
    words = text.split()
    if len(words) > MAX_WORDS_ALONE or not following:
        return None
    if _CAPS.fullmatch(text) and any(len(w) >= 4 and w.isalpha() for w in words):
        return Reading("caps", len(text))
    names = [w for w in words if not any(w.lower() in rule.small_words for rule in rules)]
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
