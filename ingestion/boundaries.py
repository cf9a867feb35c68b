"""Where a text may be cut: between paragraphs, sentences, lines and words, English and Korean."""

import re

PARAGRAPH = re.compile(r"\n[ \t]*\n\s*")
SENTENCE = re.compile(
    # A full stop after a small letter, a digit, Hangul, a bracket or an acronym, before what starts
    # a sentence; not after `e.g.`, a list number, an initial or an abbreviation.
    r"""(?:(?<=[^\s.][a-z0-9가-힣)\]"”’%][.!?…])|(?<=[A-Z]{2}[.!?]))
        (?<!\s\d\d[.])(?<!^\d\d[.])(?<!\s\d\d\d[.])
        (?<!\b[MD]r[.])(?<!\bMrs[.])(?<!\bvs[.])(?<!\b[Nn]o[.])(?<!\b[Ff]ig[.])(?<!\b[Ss]ec[.])
        (?<!\b[Aa]rt[.])(?<!\bal[.])(?<!\bcf[.])
        ["”’)\]]*\s+(?=["“‘(\[]?[^\sa-z])
      | [。！？]["”’」』)]*\s*""",
    re.X,
)
LINE = re.compile(r"\n\s*")
WORD = re.compile(r"\s+")


def last_before(boundary: re.Pattern[str], text: str, start: int, end: int) -> int | None:
    """The end of the last boundary that lies in `start:end`."""
    last = None
    for match in boundary.finditer(text, start, end):
        last = match.end()
    return last


def first_after(boundary: re.Pattern[str], text: str, start: int, end: int) -> int | None:
    """The end of the first boundary that lies in `start:end`."""
    match = boundary.search(text, start, end)
    return None if match is None else match.end()
