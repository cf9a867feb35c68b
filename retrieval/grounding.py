"""Is a sentence said by the passages that it cites? By its words, its numbers and its meaning.

A sentence that stands in a passage is. Another one is where every number of it is in a passage, and
either most of its words are, or some are and a sentence of the passages means nearly the same.
"""

import re
from collections.abc import Sequence

from models.analyzer import Analyzer
from models.embedder import Embedder
from retrieval.sentences import sentences

MOST_WORDS, SOME_WORDS = 0.7, 0.4
"""Shares of a sentence's terms that its passages say."""

ALIKE = 0.9
"""Cosine of two sentences that say nearly the same, of the local embedder."""

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def grounded(
    sentence: str, passages: Sequence[str], analyzer: Analyzer, embedder: Embedder
) -> bool:
    """Whether the passages say the sentence; none say nothing."""
    if not passages:
        return False
    squeezed = _squeezed(sentence)
    if any(squeezed in _squeezed(passage) for passage in passages):
        return True
    if _numbers(sentence) - set().union(*map(_numbers, passages)):
        return False
    terms = set(analyzer.analyze(sentence).split())
    said: set[str] = set()
    for passage in passages:
        said.update(analyzer.analyze(passage).split())
    share = len(terms & said) / len(terms) if terms else 0.0
    if share >= MOST_WORDS:
        return True
    if share < SOME_WORDS or embedder.lexical_only:
        return False
    texts = [p[start:end] for p in passages for start, end in sentences(p)]
    return bool((embedder.passages(texts) @ embedder.passages([sentence])[0]).max() >= ALIKE)


def _numbers(text: str) -> set[str]:
    return {number.replace(",", "").rstrip(".") for number in _NUMBER.findall(text)}


def _squeezed(text: str) -> str:
    return "".join(text.split()).casefold()
