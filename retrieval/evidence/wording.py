"""Words of a sentence that its passages do not have."""

from collections.abc import Sequence
from functools import cache

import Stemmer

from callslip.models.text.analyzer import Analyzer
from callslip.retrieval.evidence.clauses import Clause, claims_of, terms_of, without

_SHARED = 4
"""The least length of a common beginning of two related words: `registration`, `register`."""


def foreign(sentence: str, stated: frozenset[str], squeezed: str, analyzer: Analyzer) -> list[str]:
    """Return the specific words of a sentence that are not stated, not even in a related form.

    `stated` are the terms of the passages, `squeezed` is their text without white space.
    """
    rules = claims_of(sentence, analyzer.codes)
    if rules.specific is None:
        return []
    return [
        word
        for word in rules.specific(without(sentence, tuple(rules.amounts(sentence))))
        if len(word) > 1
        and word.casefold() not in rules.general
        and (word.isascii() or word not in squeezed)
        and not _stated(terms_of(word, analyzer) - _stems(rules.general), stated)
    ]


def share(sentence: Sequence[Clause], stated: frozenset[str]) -> float:
    """Return the share of a sentence's content words that are stated; 1 without such words."""
    words = [word for clause in sentence for word in clause.words]
    return sum(_stated(word, stated) for word in words) / len(words) if words else 1.0


def _stated(terms: frozenset[str], stated: frozenset[str]) -> bool:
    """Whether at least half of the terms are stated, or related to what is."""
    return 2 * sum(any(_related(t, other) for other in stated) for t in terms) >= len(terms)


def _related(one: str, other: str) -> bool:
    """Whether two terms are equal, or begin alike for most of their length."""
    if one == other:
        return True
    short = min(len(one), len(other))
    shared = next((n for n in range(short) if one[n] != other[n]), short)
    return shared >= _SHARED and shared >= max(len(one), len(other)) - 3


@cache
def _stems(words: frozenset[str]) -> frozenset[str]:
    return frozenset(Stemmer.Stemmer("porter").stemWords(sorted(words)))
