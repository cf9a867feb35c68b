"""Sentences of a passage, by their places in its text."""

import re
from typing import NamedTuple

HARD_BREAK = re.compile(
    r"(?<=[^\n|\t]{40})\n(?![ \t]*(?:\n|[|#>*•·–-]|\(?\w{1,3}[.)]|제\d))(?![^\n]*(?: \| |\t))"
)
"""The end of a line that was broken at a width, and so is none of a sentence, nor of a row."""

_END = re.compile(
    r"""(?:[.!?。…][\"'”’)\]]*(?=\s)  # a full stop, with what closes behind it
    |\n)\s*""",
    re.VERBOSE,
)
_ABBREVIATION = re.compile(
    r"(?:\b(?:[A-Za-z]|[Mm](?:rs?|s)|[Dd]r|[Pp]rof|[Ss]t|Nos?|nos|[Aa]rts?|[Ss]ecs?|[Ff]igs?|[Vv]ol|vs|cf"
    r"|e\.g|i\.e|al|approx|[Ii]nc|[Ll]td|[Cc]o|[Cc]orp|U\.S|U\.K|a\.m|p\.m"
    r"|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)"
    r"|\b\d{4}\.\s?\d{1,2}\.\s?\d{1,2})\.$"
)
"""Abbreviations, and a Korean date."""

_LONGEST_ABBREVIATION = 24

_ENTRY = re.compile(r"[\s#>*•·|–-]*(?:[A-Z][a-z]+\s)?\(?\d{1,3}\.")
"""The number of a list's entry or of a heading, as a sentence begins."""

_LONGEST_ENTRY = 40

_NUMBERS_GO_ON = re.compile(r"\d\.\s*\d")
_MARKS = re.compile(r"^(?:[\s#>*•·|]|[–-]+(?=[\s–-]))+")


class Span(NamedTuple):
    """`text[start:end]`."""

    start: int
    end: int


def reflow(text: str) -> str:
    """Join lines that were broken at a width, keeping every character's place."""
    return HARD_BREAK.sub(" ", text)


def sentences(text: str) -> list[Span]:
    """Where the sentences stand, in their order, without the white space and list marks around.

    Lines of a list, of a table and of headings are sentences of their own; what has no letter or
    digit is none.
    """
    flowing, found, start = reflow(text), [], 0
    for end in _END.finditer(flowing):
        stop = end.start() if flowing[end.start()] == "\n" else _closed(end, flowing)
        if _goes_on(flowing, start, end):
            continue
        found.append(_trimmed(flowing, start, stop))
        start = end.end()
    found.append(_trimmed(flowing, start, len(flowing)))
    return [span for span in found if any(map(str.isalnum, text[span.start : span.end]))]


def _goes_on(text: str, start: int, end: re.Match[str]) -> bool:
    """Whether it is a full stop within a line, before no quotation mark, that ends no sentence."""
    if text[end.start()] != "." or "\n" in end[0] or end[0][1:2] in tuple("\"'”’"):
        return False
    if end.start() and _NUMBERS_GO_ON.match(text, end.start() - 1):
        return True
    stop = end.start() + 1
    before = text[max(start, stop - _LONGEST_ABBREVIATION) : stop]
    if _ABBREVIATION.search(before):
        return True
    return stop - start <= _LONGEST_ENTRY and _ENTRY.fullmatch(text, start, stop) is not None


def _closed(end: re.Match[str], text: str) -> int:
    return end.start() + len(text[end.start() : end.end()].rstrip())


def _trimmed(text: str, start: int, end: int) -> Span:
    piece = text[start:end]
    if marks := _MARKS.match(piece):
        start += marks.end()
    return Span(start, max(start, start + len(text[start:end].rstrip())))
