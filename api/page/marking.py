"""Marks a query's words in a passage for display; the search has its own analyzer.

The analyzer is not used here because its Korean part would cost every process of the server 330 MB.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

import Stemmer

from callslip.languages import function_words
from callslip.languages.scripts import HANGUL
from callslip.retrieval.evidence.sentences import reflow

EXCERPT = 700
"""Characters of a passage in a list of hits; the page of the passage shows the rest."""

SPLIT_AT_MOST = 40
"""Longer words are not searched in parts: the number of parts grows with the square of the
length."""

MOST_HEADINGS = 3
"""The most headings at the start of a passage: its own and those of the sections around it."""

Span = tuple[int, int]

_WORD = re.compile(r"[^\W_]+")
_HANGUL = re.compile(f"[{HANGUL}]")
_LATIN = re.compile(r"[^\W_\u0e00-\u0e7f\u1100-\u11ff\u3005-\U0003ffff]+")
_PARTICLES = re.compile(
    "(?:이란|이라는|인가요|인가|입니까|합니까|하나요|되나요|까지|부터|에서|에게|에는|으로|로는"
    "|은|는|이|가|을|를|의|에|로|와|과|도|만)$"
)
_EMPTY_LINES = re.compile(r"\n\s*\n")


@dataclass(frozen=True)
class Piece:
    """A part of a text that is, or is not, a word of the query."""

    text: str
    marked: bool


@dataclass(frozen=True)
class Passage:
    """A passage in pieces; `before` and `after` are true if text was left out there."""

    pieces: tuple[Piece, ...]
    before: bool
    after: bool


def whole(text: str, query: str) -> Passage:
    """The whole passage."""
    return Passage(_pieces(text, find(text, query)), before=False, after=False)


def excerpt(text: str, query: str, longest: int = EXCERPT) -> Passage:
    """At most `longest` characters of a passage: those with the most marks."""
    spans = find(text, query)
    if len(text) <= longest:
        return Passage(_pieces(text, spans), before=False, after=False)
    starts = [0, *(_line_or_word_before(text, start) for start, _ in spans)]
    start = max(starts, key=lambda at: (_marked(spans, at, at + longest), -at))
    start = min(start, len(text) - longest)
    end = start + longest
    inside = [(s - start, e - start) for s, e in spans if start <= s and e <= end]
    return Passage(_pieces(text[start:end], inside), before=start > 0, after=end < len(text))


def find(text: str, query: str) -> list[Span]:
    """Find the query's words in the text; the spans are in order and do not overlap.

    English words match by their stems. Other words match inside longer words too, even if spaces
    divide them; Korean words match without their particle. A word without a match is split greedily
    into parts of at least two characters that occur in the text.
    """
    words = [word.casefold() for word in _WORD.findall(query)]
    ignored = function_words()
    words = [word for word in words if word not in ignored] or words
    latin = {word for word in words if _LATIN.fullmatch(word)}
    stemmer = Stemmer.Stemmer("porter")  # one per call: threads cannot share it
    stems = set(stemmer.stemWords(sorted(latin)))
    spans = [
        match.span()
        for match in _LATIN.finditer(text)
        if stemmer.stemWord(match[0].casefold()) in stems
    ]
    parts = {part for word in words if word not in latin for part in _parts(word, text)}
    if parts:
        spans += [match.span() for match in _spaced(*parts).finditer(text)]
    return _apart(spans)


def body(text: str, heading: str) -> str:
    """A passage for a list of hits: without the headings at its start and without empty lines."""
    lines = tighten(reflow(text)).strip().split("\n")
    headings = [line.strip("# ") for line in lines[:MOST_HEADINGS]]
    if heading and heading in headings:
        lines = lines[headings.index(heading) + 1 :] or lines
    return "\n".join(lines)


def tighten(text: str) -> str:
    """The text without empty lines."""
    return _EMPTY_LINES.sub("\n", text)


def _parts(word: str, text: str) -> list[str]:
    if _HANGUL.search(word):
        stem = _PARTICLES.sub("", word)
        word = stem if len(stem) > 1 else word
    if len(word) > SPLIT_AT_MOST or _spaced(word).search(text):
        return [word]
    parts, at = [], 0
    while at < len(word) - 1:
        ends = range(len(word), at + 1, -1)
        part = next((word[at:end] for end in ends if word[at:end] in text), "")
        if part:
            parts.append(part)
        at += len(part) or 1
    return parts


def _spaced(*words: str) -> re.Pattern[str]:
    longest_first = sorted(words, key=lambda word: (-len(word), word))
    return re.compile("|".join(r"\s?".join(map(re.escape, word)) for word in longest_first), re.I)


def _apart(spans: Iterable[Span]) -> list[Span]:
    separate: list[Span] = []
    for start, end in sorted(spans):
        if not separate or start >= separate[-1][1]:
            separate.append((start, end))
    return separate


def _pieces(text: str, spans: Iterable[Span]) -> tuple[Piece, ...]:
    pieces, at = [], 0
    for start, end in spans:
        pieces += [Piece(text[at:start], False), Piece(text[start:end], True)]
        at = end
    pieces.append(Piece(text[at:], False))
    return tuple(piece for piece in pieces if piece.text)


def _marked(spans: Iterable[Span], start: int, end: int) -> int:
    return sum(e - s for s, e in spans if start <= s and e <= end)


def _line_or_word_before(text: str, at: int) -> int:
    line = text.rfind("\n", max(0, at - 120), at)
    return line + 1 if line >= 0 else text.rfind(" ", 0, max(0, at - 40)) + 1
