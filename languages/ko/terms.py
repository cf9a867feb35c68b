"""Index terms of Korean text: morphemes, character pairs of compounds, articles and amounts."""

import re
from collections.abc import Iterator

from callslip.languages.index_terms import MAX_TERM, pairs
from callslip.languages.ko.morphemes import MORPHEMES
from callslip.languages.scripts import HANGUL

PIECE = 1000
"""The most characters in one call of the morpheme analysis."""

PIECES = re.compile(rf"(?s:.){{1,{PIECE}}}(?!\S)|\S{{1,{PIECE}}}")
_HANGUL = re.compile(f"[{HANGUL}]+")

_ARTICLE = re.compile(r"제\s?(\d{1,5})\s?조(?:\s?의\s?(\d{1,3}))?(?!\d)")
_UNITS = {
    **{"천": 10**3, "만": 10**4, "십만": 10**5, "백만": 10**6, "천만": 10**7, "억": 10**8},
    **{"십억": 10**9, "백억": 10**10, "천억": 10**11, "조": 10**12},
}
_UNIT = "|".join(sorted(_UNITS, key=len, reverse=True))
_AMOUNT = re.compile(
    rf"(?<![\d.])(?:\d{{1,9}}(?:\.\d{{1,9}})?\s?(?:{_UNIT})\s?){{1,4}}(?:\d{{1,9}}\s?)?"
    "(?=원|달러|명|건|개)"
)
_AMOUNT_PART = re.compile(rf"(\d+(?:\.\d+)?)\s?({_UNIT}|)")

# The tag set of Kiwi (Sejong).
COMPOUNDING = ("NNG", "NNP", "XR", "XPN", "XSN")
"""General and proper nouns, roots, and prefixes and suffixes of nouns."""
_ALONE = ("NNB", "NR", "VV", "VA")
"""Units, numerals, and the stems of verbs and adjectives."""


def terms(text: str) -> Iterator[str]:
    """Iterate over the terms of the Hangul in a normalized text; none without Hangul."""
    if not _HANGUL.search(text):
        return
    yield from _numbered(text)
    for piece in PIECES.findall(text):
        if _HANGUL.search(piece):
            yield from _of_piece(piece)


def _of_piece(text: str) -> Iterator[str]:
    compound = ""
    for token in MORPHEMES.get().of(text):
        hangul = _HANGUL.fullmatch(token.form) is not None
        if hangul and token.tag in COMPOUNDING:
            compound += token.form
            if len(token.form) != 2:  # a noun of two characters is already a pair of the compound
                yield token.form[:MAX_TERM]
            continue
        yield from pairs(compound)
        compound = ""
        if hangul and token.tag.startswith(_ALONE):
            yield token.form[:MAX_TERM]
    yield from pairs(compound)


def _numbered(text: str) -> Iterator[str]:
    """Iterate over articles and amounts, each as one term."""
    for article in _ARTICLE.finditer(text):
        yield f"{article[1]}조의{article[2]}" if article[2] else f"{article[1]}조"
    for amount in _AMOUNT.finditer(text):
        total = 0.0
        for number, unit in _AMOUNT_PART.findall(amount[0]):
            total += float(number) * _UNITS.get(unit, 1)
        yield f"{total:.0f}"[:MAX_TERM]
