"""The text analyzer of every keyword index and every keyword query.

English words are stemmed (Porter 1980). Korean is cut into morphemes, of which those that carry
meaning are kept; nouns that follow each other also give the character pairs of the compound that
they form, so that `출산 장려금` and `출산장려금` meet, and `건강보험` is found in
`국민건강보험공단`. An article is one term beside its numbers (`제12조의2`), and an amount is one
however it is written (`100만원`, `1,000,000원`). Han, kana and Thai, written without spaces, give
character pairs. No stop words are removed: on three judged English sets that moved nDCG@10 by .005
at most, mostly down, and it would drop `IT` and `AS` from Korean text.
"""

import re
import threading
import unicodedata
from collections.abc import Iterator

import Stemmer

from models.language import HANGUL
from models.morphemes import MORPHEMES
from models.normal import normalized
from models.tokens import well_formed

VERSION = "2"
"""Stored with a collection: terms of different versions do not meet."""

MAX_TERM = 64
"""Characters of a longer word that count; a line of base64 is one short term."""

PIECE = 1000
"""Characters that the morpheme analysis sees at once."""

_PAIRED = "\u0e00-\u0e7f\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff\U00020000-\U0003ffff"
_RUN = re.compile(
    rf"(?P<paired>[{_PAIRED}]+)|(?P<word>[^\W_{HANGUL}{_PAIRED}]+)|(?P<hangul>[{HANGUL}])"
)
_HANGUL = re.compile(f"[{HANGUL}]+")
PIECES = re.compile(rf"(?s:.){{1,{PIECE}}}(?!\S)|\S{{1,{PIECE}}}")
_IGNORED = re.compile(r"(?<=\d),(?=\d{3}(?!\d))|(?<=\w)['’]s\b")
"""The comma between thousands and the English possessive."""

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
"""General and proper nouns, roots, and what is put before and behind a noun."""
_ALONE = ("NNB", "NR", "VV", "VA")
"""Units, numerals, and the stems of verbs and adjectives."""


class Analyzer:
    """Threads may share it. The Korean part loads at the first Hangul, 330 MB in a second."""

    version = VERSION

    def analyze(self, text: str) -> str:
        """The terms of a text, separated by spaces; a repeated term is repeated. May be empty.

        The same text always gives the same terms. No term holds a space or is longer than
        MAX_TERM characters; time and memory grow linearly with the text.
        """
        return " ".join(self._terms(_normalize(text)))

    def _terms(self, text: str) -> Iterator[str]:
        korean = False
        for run in _RUN.finditer(text):
            if run.lastgroup == "word":
                yield _stem(run[0][:MAX_TERM])
            elif run.lastgroup == "paired":
                yield from _pairs(run[0]) if len(run[0]) > 1 else run[0]
            else:
                korean = True
        if korean:
            yield from _numbered(text)
            for piece in PIECES.findall(text):
                if _HANGUL.search(piece):
                    yield from _korean(piece)


def _korean(text: str) -> Iterator[str]:
    compound = ""
    for token in MORPHEMES.get().of(text):
        hangul = _HANGUL.fullmatch(token.form) is not None
        if hangul and token.tag in COMPOUNDING:
            compound += token.form
            if len(token.form) != 2:  # one of two characters is a pair of the compound
                yield token.form[:MAX_TERM]
            continue
        yield from _pairs(compound)
        compound = ""
        if hangul and token.tag.startswith(_ALONE):
            yield token.form[:MAX_TERM]
    yield from _pairs(compound)


def _numbered(text: str) -> Iterator[str]:
    """Articles and amounts, each as one term."""
    for article in _ARTICLE.finditer(text):
        yield f"{article[1]}조의{article[2]}" if article[2] else f"{article[1]}조"
    for amount in _AMOUNT.finditer(text):
        total = 0.0
        for number, unit in _AMOUNT_PART.findall(amount[0]):
            total += float(number) * _UNITS.get(unit, 1)
        yield f"{total:.0f}"[:MAX_TERM]


class _Stemmers(threading.local):
    """One per thread: PyStemmer's are not safe to share."""

    def __init__(self) -> None:
        self.english = Stemmer.Stemmer("porter")


_stemmers = _Stemmers()


def _normalize(text: str) -> str:
    return _IGNORED.sub("", normalized("NFKC", well_formed(text)).lower())


def _stem(word: str) -> str:
    if not word.isascii():  # café is also written cafe
        letters = normalized("NFD", word)
        word = "".join(c for c in letters if not unicodedata.combining(c))
    stem: str = _stemmers.english.stemWord(word) or word  # Porter leaves nothing of `s`
    return stem


def _pairs(text: str) -> Iterator[str]:
    return (text[i : i + 2] for i in range(len(text) - 1))
