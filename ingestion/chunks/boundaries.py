"""Finds the boundaries at which a text may be cut: of paragraphs, sentences, lines and words."""

import re
from functools import cache

from callslip.languages import DEFAULT, Codes, languages

PARAGRAPH = re.compile(r"\n[ \t]*\n\s*")
LINE = re.compile(r"\n\s*")
WORD = re.compile(r"\s+")


@cache
def sentence_end(codes: Codes = DEFAULT) -> re.Pattern[str]:
    """Return the pattern of a sentence end.

    The pattern matches a full stop after a lower-case letter, a digit, Hangul, a bracket or an
    acronym, if the start of a sentence follows. It does not match after `e.g.`, a list number, an
    initial or an abbreviation.
    """
    rules = [language.sentences for language in languages(codes)]
    letters = "".join(one.letters for one in rules)
    small = "".join(one.small for one in rules)
    uncut = "".join(f"(?<!{word}[.])" for one in rules for word in one.uncut)
    return re.compile(
        rf"""(?:(?<=[^\s.][{letters}0-9)\]"”’%][.!?…])|(?<=[A-Z]{{2}}[.!?]))
            (?<!\s\d\d[.])(?<!^\d\d[.])(?<!\s\d\d\d[.]){uncut}
            ["”’)\]]*\s+(?=["“‘(\[]?[^\s{small}])
          | [。！？]["”’」』)]*\s*""",
        re.X,
    )


def last_before(boundary: re.Pattern[str], text: str, start: int, end: int) -> int | None:
    """Return the end of the last boundary in `start:end`, or None."""
    last = None
    for match in boundary.finditer(text, start, end):
        last = match.end()
    return last


def first_after(boundary: re.Pattern[str], text: str, start: int, end: int) -> int | None:
    """Return the end of the first boundary in `start:end`, or None."""
    match = boundary.search(text, start, end)
    return None if match is None else match.end()
