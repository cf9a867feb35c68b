"""Clauses of a text: their terms, their amounts, and whether they deny."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from callslip.languages import DEFAULT, Codes, language, languages
from callslip.languages.contract import Amount, Claims
from callslip.models.text.analyzer import Analyzer
from callslip.models.text.language import lang
from callslip.retrieval.evidence.sufficiency import FUNCTION_TERMS

_OF_NOT = frozenset(
    (
        *(
            "not",
            "cannot",
            "never",
            "no",
            "t",
            "without",
            "unless",
            "free",
            "noth",
            "nobodi",
            "none",
        ),
        *("않", "아니", "못", "못하", "없", "있", "말", "안"),
    )
)
"""Terms of denying words, among them the Korean verb that expresses existence."""


@dataclass(frozen=True)
class Clause:
    """A clause: the content terms of each of its words, its amounts, and how often it denies.

    `measures` has for each amount the currency, the half of the day or the unit that the clause
    states.
    """

    text: str
    words: tuple[frozenset[str], ...]
    amounts: tuple[Amount, ...]
    measures: tuple[frozenset[str], ...]
    negations: int

    @property
    def terms(self) -> frozenset[str]:
        """The content terms of all words."""
        return frozenset().union(*self.words)


def terms(parts: Iterable[Sequence[Clause]]) -> frozenset[str]:
    """Return the content terms of several sentences, each as its clauses."""
    return frozenset(term for part in parts for clause in part for term in clause.terms)


def claims_of(text: str, codes: Codes = DEFAULT) -> Claims:
    """Return the rules of a text's language, of the first language if none is evident."""
    return language(lang(text, codes) or codes[0]).claims


def commands(text: str, codes: Codes = DEFAULT) -> bool:
    """Whether a text tells whoever answers what to say."""
    return claims_of(text, codes).command.search(text) is not None


@lru_cache(maxsize=2048)
def clauses(text: str, analyzer: Analyzer) -> tuple[Clause, ...]:
    """Return the clauses of a sentence in order; those without a letter or digit are left out."""
    rules = claims_of(text, analyzer.codes)
    cuts = [0, *(match.end() for match in rules.clause.finditer(text)), len(text)]
    pieces = [text[start:end] for start, end in pairwise(cuts)]
    return tuple(_clause(p, rules, analyzer) for p in pieces if any(map(str.isalnum, p)))


def _clause(text: str, rules: Claims, analyzer: Analyzer) -> Clause:
    amounts = tuple(rules.amounts(text))
    counting = [amount for amount in amounts if amount.dimension != "ordinal"]
    words = (terms_of(word, analyzer) for word in without(text, counting).split())
    denying = rules.negation.findall(rules.bounds.sub(" ", text))
    measures = tuple(rules.measures(text, amount) for amount in amounts)
    return Clause(text, tuple(filter(None, words)), amounts, measures, len(denying))


def terms_of(word: str, analyzer: Analyzer) -> frozenset[str]:
    """Return the terms of a word, none for function words and denying words."""
    own = frozenset(analyzer.analyze(word).split()) - FUNCTION_TERMS - _OF_NOT
    same = _same(analyzer)
    return frozenset(same.get(term, term) for term in own)


@lru_cache(maxsize=4)
def _same(analyzer: Analyzer) -> Mapping[str, str]:
    """The terms of words that name the same, each with the first of its group."""
    same: dict[str, str] = {}
    for group in (group for one in languages(analyzer.codes) for group in one.claims.synonyms):
        split = [analyzer.analyze(word).split() for word in sorted(group)]
        single = [each[0] for each in split if len(each) == 1]
        for term in single:
            same.setdefault(term, same.get(single[0], single[0]))
    return same


def without(text: str, amounts: Sequence[Amount]) -> str:
    """Return the text with blanks in the amounts' positions."""
    for amount in amounts:
        text = f"{text[: amount.start]}{' ' * (amount.end - amount.start)}{text[amount.end :]}"
    return text
