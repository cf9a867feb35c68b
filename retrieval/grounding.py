"""Is a sentence said by the passages that it cites? By its words, its numbers and its meaning.

A sentence that stands in a passage is. Another one is where every number, name and address of it
is in a passage, no clause of it is without their words, and either most of its words are theirs, or
half of them are and a sentence of the passages means nearly the same. What says nearly the words of
a sentence, but not its `not`, is not said.

Meaning alone would not do: to the local embedder `leave lasts 20 weeks and includes a bonus` is as
near to `leave lasts 20 weeks` (.94) as a paraphrase of it.
"""

import re
from collections.abc import Sequence

from callslip.errors import EmbedderDown
from models.analyzer import Analyzer
from models.embedder import Embedder
from retrieval.sentences import sentences
from retrieval.shares import jaccard
from retrieval.sufficiency import FUNCTION_TERMS

MOST_WORDS, SOME_WORDS = 0.7, 0.5
"""Shares of a sentence's terms, but for function words, that its passages say."""

LONGEST_STRAY = 2
"""Words in a row that say something and that no passage says: more are a claim of their own."""

ALIKE = 0.9
"""Cosine of two sentences that say nearly the same, of the local embedder."""

SAME_WORDS = 0.6
"""Jaccard's index of the terms of two sentences of which one may deny the other."""

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_UNIT = re.compile(
    r"(\d+(?:[.,]\d+)*)\s*(?:(?:[a-z]+\s+)?"
    r"(day|week|month|year|hour|minute|second|percent|euro|dollar|pound)s?\b"
    r"|(%|개월|시간|[일주년분초원명]))",
    re.IGNORECASE,
)
_NAME = re.compile(r"(?<=[\w,;:'’\"”)(“] )[\"“(]*([A-Z][\w-]*)")
"""A word with a capital that does not begin a sentence."""

_ADDRESS = re.compile(r"\S*(?:://|www\.|\]\(|</?[A-Za-z]|\w@\w)\S*")
"""What leads elsewhere: links, markup, mail addresses."""

_NOT = re.compile(
    r"\b(?:not|cannot|never|no(?!\.\s*\d))\b|n['’]t\b|않|아니|못\s?[하한할]|없(?!이)|불가|금지",
    re.IGNORECASE,
)
_OF_NOT = frozenset(("not", "cannot", "never", "no", "t", "않", "아니", "못", "못하", "없", "있"))
"""Terms of what denies, and of the Korean word for what it denies."""


def grounded(
    sentence: str,
    passages: Sequence[str],
    analyzer: Analyzer,
    embedder: Embedder,
    names: Sequence[str] = (),
) -> bool:
    """Whether the passages say the sentence, of which these are names; none say nothing."""
    if not passages or not any(map(str.isalnum, sentence)):
        return False
    parts = [p[start:end] for p in passages for start, end in sentences(p)]
    if any(_squeezed(sentence) == _squeezed(whole) for whole in (*parts, *passages)):
        return True
    terms = frozenset(analyzer.analyze(sentence).split())
    said = [frozenset(analyzer.analyze(part).split()) for part in parts]
    if _denied(sentence, terms, parts, said):
        return False
    if any(_stands_in(sentence, passage) for passage in passages):
        return True
    if _numbers(sentence) - set().union(*map(_numbers, passages)):
        return False
    told = [*_NAME.findall(sentence), *_ADDRESS.findall(sentence), *names]
    if _other_units(sentence, passages) or _unnamed(told, passages):
        return False
    every = frozenset().union(*said)
    if _stray(sentence, every, analyzer) > LONGEST_STRAY:
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


def _stray(sentence: str, said: frozenset[str], analyzer: Analyzer) -> int:
    """The most words in a row of which nothing is said; function words do not count."""
    run = most = 0
    for word in sentence.split():
        terms = frozenset(analyzer.analyze(word).split()) - FUNCTION_TERMS
        if terms:
            run = 0 if terms & said else run + 1
            most = max(most, run)
    return most


def _denied(
    sentence: str, terms: frozenset[str], parts: Sequence[str], said: Sequence[frozenset[str]]
) -> bool:
    """Whether the sentence of the passages that is nearest by its words says the opposite."""
    told = terms - _OF_NOT
    alike = [(len(told & other), jaccard(told, other - _OF_NOT)) for other in said]
    if not alike or max(alike)[1] < SAME_WORDS:
        return False
    nearest = [part for part, how in zip(parts, alike, strict=True) if how == max(alike)]
    denies = _NOT.search(sentence) is not None
    return all((_NOT.search(part) is not None) != denies for part in nearest)


def _stands_in(sentence: str, passage: str) -> bool:
    """Whether it stands there word for word, wherever lines are broken; not `20` in `120`."""
    wanted = _squeezed(sentence)
    kept = [(n, c) for n, each in enumerate(passage) if not each.isspace() for c in each.casefold()]
    text = "".join(c for _, c in kept)
    at = text.find(wanted)
    while at >= 0:
        start, end = kept[at][0], kept[at + len(wanted) - 1][0]
        before, after = passage[:start][-1:], passage[end + 1 :][:1]
        if not (_within_word(before, passage[start]) or _within_word(passage[end], after)):
            return True
        at = text.find(wanted, at + 1)
    return False


def _within_word(one: str, other: str) -> bool:
    return one.isalnum() and other.isalnum()


def _other_units(sentence: str, passages: Sequence[str]) -> bool:
    """Whether an amount has another unit wherever the passages give it one."""
    told: dict[str, set[str]] = {}
    for passage in passages:
        for number, unit in _amounts(passage):
            told.setdefault(number, set()).add(unit)
    return any(unit not in told.get(number, {unit}) for number, unit in _amounts(sentence))


def _amounts(text: str) -> list[tuple[str, str]]:
    found = _UNIT.findall(text)
    return [(_plain(number), (latin or other).lower()) for number, latin, other in found]


def _unnamed(names: Sequence[str], passages: Sequence[str]) -> bool:
    """Whether a name stands in none of the passages."""
    told = [_squeezed(passage) for passage in passages]
    return any(not any(_squeezed(name) in each for each in told) for name in names)


def _numbers(text: str) -> set[str]:
    return {_plain(number) for number in _NUMBER.findall(text)}


def _plain(number: str) -> str:
    return number.replace(",", "").rstrip(".")


def _squeezed(text: str) -> str:
    return "".join(text.split()).casefold()
