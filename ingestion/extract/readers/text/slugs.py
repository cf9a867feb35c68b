"""The ids that GitHub gives the headings of a Markdown file."""

import re
import unicodedata
from dataclasses import replace

from callslip.ingestion.values import ExtractedText, Heading

LONGEST = 200
"""The maximum characters of a slug."""

_EMPHASIS = re.compile(r"(?<![^\W_])(_{1,2})(?=\S)([^_\n]+)(?<=\S)\1(?![^\W_])")


def with_slugs(text: ExtractedText) -> ExtractedText:
    """Return the text whose headings without an anchor have GitHub's, unique within the file.

    The rules are those of the library github-slugger: lower case, no punctuation but `-` and `_`,
    a hyphen for each blank, and `-1`, `-2` … after a slug that an earlier heading has.
    """
    used: dict[str, int] = {}
    headings: list[Heading] = []
    for heading in text.headings:
        if not heading.anchor:
            own = slug(text.text[heading.start : heading.end])
            heading = replace(heading, anchor=_unique(own, used))
        headings.append(heading)
    return replace(text, headings=tuple(headings))


def slug(words: str) -> str:
    """Return the slug of a heading; empty if the heading has only punctuation."""
    plain = _EMPHASIS.sub(r"\2", words).strip().lower()
    return "".join(c for c in plain if _stays(c)).replace(" ", "-")[:LONGEST]


def _stays(letter: str) -> bool:
    return letter in " -_" or letter.isalnum() or unicodedata.category(letter)[0] == "M"


def _unique(own: str, used: dict[str, int]) -> str:
    if not own:
        return ""
    if own not in used:
        used[own] = 0
        return own
    while (numbered := f"{own}-{used[own] + 1}") in used:
        used[own] += 1
    used[own] += 1
    used[numbered] = 0
    return numbered
