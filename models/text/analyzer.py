"""The text analyzer of every keyword index and every keyword query.

English words are stemmed (Porter 1980). Korean is cut into morphemes, and the morphemes that carry
meaning are indexed. Consecutive nouns also yield the character pairs of their compound, so that
`출산 장려금` and `출산장려금` have the same terms, and `건강보험` matches `국민건강보험공단`. The
number of an article is one term in addition to its digits (`제12조의2`), and an amount is the same
term in every notation (`100만원`, `1,000,000원`). Han, kana and Thai, which are written without
spaces, yield character pairs. Stop words stay: their removal changed nDCG@10 on three judged
English sets by .005 at most, mostly down, and would drop `IT` and `AS` from Korean text.

Further languages only add terms: a German text has the German stems of its words in addition to the
English stems, so that queries still match documents that were indexed before German was set up.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence

from callslip.languages import DEFAULT, Codes, languages
from callslip.languages.contract import Language
from callslip.languages.index_terms import MAX_TERM, pairs
from callslip.languages.scripts import HANGUL
from callslip.models.text.index_form import ignored, lower_form
from callslip.models.text.language import stems_of
from callslip.models.text.normalization import normalized

__all__ = ["MAX_TERM", "VERSION", "Analyzer", "version_of"]

VERSION = "2"
"""Stored with a collection, because terms of different versions do not match."""

PAIRED = "\u0e00-\u0e7f\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff\U00020000-\U0003ffff"
_RUN = re.compile(rf"(?P<paired>[{PAIRED}]+)|(?P<word>[^\W_{HANGUL}{PAIRED}]+)")


def version_of(codes: Codes) -> str:
    """Return the version of an analyzer with these languages in addition to the default ones."""
    return "+".join((VERSION, *(code for code in codes if code not in DEFAULT)))


class Analyzer:
    """Makes the terms of texts. Threads may share an instance.

    The Korean part loads at the first Hangul: 330 MB, in a second.
    """

    def __init__(self, codes: Codes = DEFAULT) -> None:
        """`codes` are languages in addition to the default ones."""
        self.codes = (*DEFAULT, *(code for code in codes if code not in DEFAULT))
        self._base = _stemming(languages(DEFAULT))
        self._more = len(self.codes) > len(DEFAULT)
        self.version = version_of(self.codes)
        self._ignored = ignored()

    def analyze(self, text: str) -> str:
        """Return the terms of a text, separated by spaces, with repetitions. May be empty.

        The same text always yields the same terms. No term contains a space or is longer than
        MAX_TERM characters; time and memory grow linearly with the text.
        """
        lower = lower_form(text)
        return " ".join(self._terms(self._ignored.sub("", lower), lower))

    def _terms(self, text: str, lower: str) -> Iterator[str]:
        """Iterate over the terms of `text`, and of the numbers in `lower`.

        `lower` is the text in lower case before the ignored forms are removed.
        """
        stemming = self._base
        if self._more:
            evident = stems_of(lower, self.codes)
            stemming = (*stemming, *(one for one in evident if one not in stemming))
        for run in _RUN.finditer(text):
            if run.lastgroup == "word":
                yield from _stems(run[0][:MAX_TERM], stemming)
            else:
                yield from pairs(run[0]) if len(run[0]) > 1 else run[0]
        for one in languages(self.codes):
            if one.terms.of_text is not None:
                yield from one.terms.of_text(text)
        for one in stemming:
            if one.terms.numbers is not None:
                yield from one.terms.numbers(lower)


def _stemming(chosen: Sequence[Language]) -> tuple[Language, ...]:
    return tuple(one for one in chosen if one.terms.stem is not None)


def _stems(word: str, stemming: Sequence[Language]) -> Iterator[str]:
    """Iterate over the distinct stems of a word in lower case, in the order of the languages."""
    stems: dict[str, None] = {}
    for one in stemming:
        if one.terms.stem is not None:
            known = plain(word) if one.terms.plain else word
            stems[one.terms.stem(known) or known] = None  # the Porter stem of `s` is empty
    yield from stems


def plain(word: str) -> str:
    """Return the word without diacritics: café is also written cafe."""
    if word.isascii():
        return word
    letters = normalized("NFD", word)
    return "".join(c for c in letters if not unicodedata.combining(c))
