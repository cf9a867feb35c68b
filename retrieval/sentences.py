"""Sentences of a passage, by their places in its text."""

import re
from typing import NamedTuple

HARD_BREAK = re.compile(r"(?<=[^\n]{40})\n(?![ \t]*(?:\n|[|#>*•·–-]|\(?\w{1,3}[.)]|제\d))")
"""The end of a line that was broken at a width, and so is none of a sentence."""

_END = re.compile(
    r"""(?:[.!?。…][\"'”’)\]]*(?=\s)  # a full stop, with what closes behind it
    |\n)\s*""",
    re.VERBOSE,
)
_NO_END = re.compile(
    r"(?:\b(?:[A-Za-z]|[Mm]rs?|[Dd]r|[Pp]rof|[Ss]t|[Nn]os?|[Aa]rts?|[Ss]ecs?|[Ff]igs?|[Vv]ol|vs|cf"
    r"|e\.g|i\.e|al|approx|[Ii]nc|[Ll]td|[Cc]o|[Cc]orp|U\.S|U\.K|a\.m|p\.m"
    r"|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)|(?:^|\s)\(?\d{1,3})\.$"
)
_MARKS = re.compile(r"^[\s#>*•·|–-]+")


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
        if flowing[end.start()] == "." and _NO_END.search(flowing[start : end.start() + 1]):
            continue
        found.append(_trimmed(flowing, start, stop))
        start = end.end()
    found.append(_trimmed(flowing, start, len(flowing)))
    return [span for span in found if any(map(str.isalnum, text[span.start : span.end]))]


def _closed(end: re.Match[str], text: str) -> int:
    return end.start() + len(text[end.start() : end.end()].rstrip())


def _trimmed(text: str, start: int, end: int) -> Span:
    piece = text[start:end]
    if marks := _MARKS.match(piece):
        start += marks.end()
    return Span(start, max(start, start + len(text[start:end].rstrip())))
