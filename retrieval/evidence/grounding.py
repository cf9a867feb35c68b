"""Grounding: decides whether the passages that a sentence cites support the sentence.

A sentence is supported if it equals a sentence of a passage or a whole passage. Otherwise it is
unsupported if the passage sentence with the most words in common differs from it by a negation
(such as `not`). Without such a negation it is supported if

(1) a passage contains the sentence word for word, or
(2) all of the following hold:
    - the passages contain every number, name and address of the sentence,
    - no amount has another unit than in the passages,
    - the sentence has at most `LONGEST_UNSUPPORTED` content words in a row that no passage has,
    - the passages contain at least the share `MOST_WORDS` of its content terms; or the share
      `SOME_WORDS`, and a passage sentence has a cosine of at least `ALIKE` to the sentence.

A cosine alone is not enough: the local embedder gives `leave lasts 20 weeks and includes a bonus`
the same cosine to `leave lasts 20 weeks` (.94) as a paraphrase.
"""

import re
from collections.abc import Sequence

from callslip.errors import EmbedderDown
from callslip.models.embedders.contract import Embedder
from callslip.models.text.analyzer import Analyzer
from callslip.retrieval.evidence.overlap import jaccard
from callslip.retrieval.evidence.sentences import sentences
from callslip.retrieval.evidence.sufficiency import FUNCTION_TERMS

MOST_WORDS, SOME_WORDS = 0.7, 0.5
"""Shares of a sentence's terms, without function words, that its passages contain."""

LONGEST_UNSUPPORTED = 2
"""The maximum number of consecutive content words that no passage contains; more words are a claim
that the passages do not make."""

ALIKE = 0.9
"""The minimum cosine, with the local embedder, of two sentences of nearly the same meaning."""

SAME_WORDS = 0.6
"""The minimum Jaccard index of the terms of two sentences of which one may negate the other."""

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_UNIT = re.compile(
    r"(\d+(?:[.,]\d+)*)\s*(?:(?:[a-z]+\s+)?"
    r"(day|week|month|year|hour|minute|second|percent|euro|dollar|pound)s?\b"
    r"|(%|개월|시간|[일주년분초원명]))",
    re.IGNORECASE,
)
_NAME = re.compile(r"(?<=[\w,;:'’\"”)(“] )[\"“(]*([A-Z][\w-]*)")
"""A capitalized word that does not start a sentence."""

_ADDRESS = re.compile(r"\S*(?:://|www\.|\]\(|</?[A-Za-z]|\w@\w)\S*")
"""Links, markup and mail addresses."""

_NOT = re.compile(
    r"\b(?:not|cannot|never|no(?!\.\s*\d))\b|n['’]t\b|않|아니|못\s?[하한할]|없(?!이)|불가|금지",
    re.IGNORECASE,
)
_OF_NOT = frozenset(("not", "cannot", "never", "no", "t", "않", "아니", "못", "못하", "없", "있"))
"""Terms of negating words, among them the Korean verb that expresses existence."""


def grounded(
    sentence: str,
    passages: Sequence[str],
    analyzer: Analyzer,
    embedder: Embedder,
    names: Sequence[str] = (),
) -> bool:
    """Whether the passages support the sentence; false if there are no passages.

    `names` are names in the sentence. Without an answer from the embedder the decision rests on
    words alone.
    """
    if not passages or not any(map(str.isalnum, sentence)):
        return False
    parts = [p[start:end] for p in passages for start, end in sentences(p)]
    if any(_squeezed(sentence) == _squeezed(whole) for whole in (*parts, *passages)):
        return True
    terms = frozenset(analyzer.analyze(sentence).split())
    terms_of_parts = [frozenset(analyzer.analyze(part).split()) for part in parts]
    if _denied(sentence, terms, parts, terms_of_parts):
        return False
    if any(_stands_in(sentence, passage) for passage in passages):
        return True
    if _numbers(sentence) - set().union(*map(_numbers, passages)):
        return False
    claimed = [*_NAME.findall(sentence), *_ADDRESS.findall(sentence), *names]
    if _other_units(sentence, passages) or _unnamed(claimed, passages):
        return False
    every = frozenset().union(*terms_of_parts)
    if _longest_unsupported(sentence, every, analyzer) > LONGEST_UNSUPPORTED:
        return False
    content = terms - FUNCTION_TERMS or terms
    share = len(content & every) / len(content) if content else 0.0
    if share >= MOST_WORDS:
        return True
    if share < SOME_WORDS or embedder.lexical_only:
        return False
    try:
        cosines = embedder.passages(parts) @ embedder.passages([sentence])[0]
    except EmbedderDown:
        return False
    return bool(cosines.max() >= ALIKE)


def _longest_unsupported(sentence: str, stated: frozenset[str], analyzer: Analyzer) -> int:
    """Return the longest run of words without a term in `stated`; function words do not count."""
    run = most = 0
    for word in sentence.split():
        terms = frozenset(analyzer.analyze(word).split()) - FUNCTION_TERMS
        if terms:
            run = 0 if terms & stated else run + 1
            most = max(most, run)
    return most


def _denied(
    sentence: str, terms: frozenset[str], parts: Sequence[str], others: Sequence[frozenset[str]]
) -> bool:
    """Whether the passage sentence with the most words in common states the opposite."""
    stated = terms - _OF_NOT
    alike = [(len(stated & other), jaccard(stated, other - _OF_NOT)) for other in others]
    if not alike or max(alike)[1] < SAME_WORDS:
        return False
    nearest = [part for part, how in zip(parts, alike, strict=True) if how == max(alike)]
    denies = _NOT.search(sentence) is not None
    return all((_NOT.search(part) is not None) != denies for part in nearest)


def _stands_in(sentence: str, passage: str) -> bool:
    """Whether the passage contains the sentence word for word.

    White space and letter case do not matter. A match must start and end at word boundaries: `20`
    is not in `120`.
    """
    wanted = _squeezed(sentence)
    characters = [
        (n, c) for n, each in enumerate(passage) if not each.isspace() for c in each.casefold()
    ]
    text = "".join(c for _, c in characters)
    at = text.find(wanted)
    while at >= 0:
        start, end = characters[at][0], characters[at + len(wanted) - 1][0]
        before, after = passage[:start][-1:], passage[end + 1 :][:1]
        if not (_within_word(before, passage[start]) or _within_word(passage[end], after)):
            return True
        at = text.find(wanted, at + 1)
    return False


def _within_word(one: str, other: str) -> bool:
    return one.isalnum() and other.isalnum()


def _other_units(sentence: str, passages: Sequence[str]) -> bool:
    """Whether the passages give an amount of the sentence only other units."""
    units_of: dict[str, set[str]] = {}
    for passage in passages:
        for number, unit in _amounts(passage):
            units_of.setdefault(number, set()).add(unit)
    return any(unit not in units_of.get(number, {unit}) for number, unit in _amounts(sentence))


def _amounts(text: str) -> list[tuple[str, str]]:
    amounts = _UNIT.findall(text)
    return [(_plain(number), (latin or other).lower()) for number, latin, other in amounts]


def _unnamed(names: Sequence[str], passages: Sequence[str]) -> bool:
    """Whether none of the passages contains one of the names."""
    squeezed = [_squeezed(passage) for passage in passages]
    return any(not any(_squeezed(name) in each for each in squeezed) for name in names)


def _numbers(text: str) -> set[str]:
    return {_plain(number) for number in _NUMBER.findall(text)}


def _plain(number: str) -> str:
    return number.replace(",", "").rstrip(".")


def _squeezed(text: str) -> str:
    return "".join(text.split()).casefold()
