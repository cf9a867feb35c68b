"""The kinds of analyzers that a collection can choose, and the analyzer of a collection."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import get_args

from callslip.languages import DEFAULT, Codes, languages
from callslip.languages.index_terms import MAX_TERM, pairs
from callslip.languages.scripts import HANGUL
from callslip.models.text.analyzer import PAIRED, VERSION, Analyzer, plain, version_of
from callslip.models.text.index_form import ignored_in
from callslip.vocabulary import AnalyzerKind

_RUN = re.compile(rf"(?P<paired>[{PAIRED}]+)|(?P<word>[^\W_{PAIRED}]+)")
_HANGUL = re.compile(f"[{HANGUL}]").search


class KindAnalyzer(Analyzer):
    """An analyzer of another kind than `default`.

    `english`: the stems of English words; other words as they are, also Korean ones. `korean`: the
    morphemes of Korean; other words as they are. `words`: every word as it is. `bigrams`: the
    character pairs of every word. In each of them case is ignored, and Han, kana and Thai yield
    character pairs.
    """

    def __init__(self, kind: AnalyzerKind, codes: Codes = DEFAULT) -> None:
        """`codes` are the languages of the installation, for callers that need them."""
        super().__init__(codes)
        self._kind = kind
        self.version = version_of_kind(codes, kind)
        own: Codes = {"english": ("en",), "korean": ("ko",)}.get(kind, ())
        self._own = languages(own)
        self._ignored = ignored_in(self._own)

    def _terms(self, text: str, lower: str) -> Iterator[str]:
        for run in _RUN.finditer(text):
            word = run[0]
            if run.lastgroup == "paired" or self._kind == "bigrams":
                yield from pairs(word) if len(word) > 1 else word
            elif self._kind != "korean":
                yield self._stem(word[:MAX_TERM])
            else:
                yield from (part for part in re.split(f"[{HANGUL}]+", word[:MAX_TERM]) if part)
        for one in self._own:
            if one.terms.of_text is not None:
                yield from one.terms.of_text(text)

    def _stem(self, word: str) -> str:
        for one in self._own:
            if one.terms.stem is not None and not _HANGUL(word):
                known = plain(word) if one.terms.plain else word
                return one.terms.stem(known) or known
        return word


def version_of_kind(codes: Codes, kind: AnalyzerKind) -> str:
    """Return the version of an analyzer of this kind with these languages.

    The languages make no difference to a kind other than `default`.
    """
    return version_of(codes) if kind == "default" else f"{VERSION}:{kind}"


def kind_of(version: str) -> AnalyzerKind:
    """Return the kind of the analyzer of this version, as a collection's record names it."""
    named = version.partition(":")[2]
    return next((kind for kind in get_args(AnalyzerKind) if kind == named), "default")


def analyzer_of(version: str, present: Analyzer) -> Analyzer:
    """Return the analyzer of a collection, whose record names `version`.

    `present` is the installation's, which every collection has that chose no other kind.
    """
    kind = kind_of(version)
    return present if kind == "default" else of_kind(kind, present)


def of_kind(kind: AnalyzerKind, present: Analyzer) -> Analyzer:
    """Return the analyzer of this kind, with the languages of the installation's."""
    return present if kind == "default" else _made(kind, present.codes)


@lru_cache(maxsize=16)
def _made(kind: AnalyzerKind, codes: Codes) -> Analyzer:
    return KindAnalyzer(kind, codes)
