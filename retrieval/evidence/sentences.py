"""Splits a passage into sentences, as spans of its text."""

import re
from functools import cache
from typing import NamedTuple

from callslip.languages import DEFAULT, Codes, languages

_END = re.compile(
    r"""(?:[.!?。…][\"'”’)\]]*(?=\s)  # a full stop, with what closes behind it
    |\n)\s*""",
    re.VERBOSE,
)
_LONGEST_ABBREVIATION = 24

_ENTRY = re.compile(r"[\s#>*•·|–-]*(?:[A-Z][a-z]+\s)?\(?\d{1,3}\.")
"""The number of a list entry or heading at the start of a sentence."""

_LONGEST_ENTRY = 40

_NUMBERS_GO_ON = re.compile(r"\d\.\s*\d")
_UNIT_BEFORE = re.compile(r"\b[A-Z][a-z]{1,4}\.\s\d\Z")
"""A number behind an abbreviation: `Rs. 500`."""

_MARKS = re.compile(r"^(?:[\s#>•·|]|\*++(?!\S[^*]*\*)|[–-]+(?=[\s–-]))+")
"""Marks of lists and headings. Asterisks that close within the sentence are its emphasis."""


class Span(NamedTuple):
    """`text[start:end]`."""

    start: int
    end: int


_WRAPPED = 40
"""The least width of a line that was wrapped; a Hangul syllable or a Han sign is two wide."""


@cache
def _break(codes: Codes) -> re.Pattern[str]:
    """The end of a line before one that begins neither a list entry nor a row."""
    lines = (language.sentences.numbered_line for language in languages(codes))
    begins = "|".join((r"\n", r"[|#>*•·–-]", r"\(?\w{1,3}[.)]", *filter(None, lines)))
    return re.compile(rf"\n(?![ \t]*(?:{begins}))(?![^\n]*(?: \| |\t))")


def reflow(text: str, codes: Codes = DEFAULT) -> str:
    """Join lines that were wrapped at a fixed width; every character keeps its position."""
    return _break(codes).sub(_joined, text)


def _joined(end: re.Match[str]) -> str:
    """A blank instead of a line end after a wide line that is no row of a table."""
    before = end.string[max(0, end.start() - _WRAPPED) : end.start()].rpartition("\n")[2]
    width = len(before) + sum(sign >= "\u1100" for sign in before)
    return " " if width >= _WRAPPED and not {"|", "\t"} & set(before) else "\n"


def sentences(text: str, codes: Codes = DEFAULT) -> list[Span]:
    """Return the spans of the sentences in order, without outer white space and list marks.

    Each line of a list, a table or a heading is a separate sentence. Text without a letter or digit
    is not a sentence.
    """
    flowing, spans, start = reflow(text, codes), [], 0
    for end in _END.finditer(flowing):
        stop = end.start() if flowing[end.start()] == "\n" else _closed(end, flowing)
        if _goes_on(flowing, start, end, codes):
            continue
        spans.append(_trimmed(flowing, start, stop))
        start = end.end()
    spans.append(_trimmed(flowing, start, len(flowing)))
    return [span for span in spans if any(map(str.isalnum, text[span.start : span.end]))]


def _goes_on(text: str, start: int, end: re.Match[str], codes: Codes) -> bool:
    """Whether a full stop in a line, not before a quotation mark, does not end a sentence."""
    if text[end.start()] != "." or "\n" in end[0] or end[0][1:2] in tuple("\"'”’"):
        return False
    if end.start() and _NUMBERS_GO_ON.match(text, end.start() - 1):
        return True
    if _UNIT_BEFORE.search(text, max(start, end.start() - 6), end.end() + 1):
        return True
    stop = end.start() + 1
    before = text[max(start, stop - _LONGEST_ABBREVIATION) : stop]
    for language in languages(codes):
        rules = language.sentences
        if rules.abbreviation.search(before) or rules.continues.match(text, end.start()):
            return True
    return stop - start <= _LONGEST_ENTRY and _ENTRY.fullmatch(text, start, stop) is not None


def _closed(end: re.Match[str], text: str) -> int:
    return end.start() + len(text[end.start() : end.end()].rstrip())


def _trimmed(text: str, start: int, end: int) -> Span:
    piece = text[start:end]
    if marks := _MARKS.match(piece):
        start += marks.end()
    return Span(start, max(start, start + len(text[start:end].rstrip())))
