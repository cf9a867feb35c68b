"""Grounding: decides whether the passages that a sentence cites support the sentence.

Sentences of a passage that tell whoever answers what to say (`Claims.command`) support nothing. A
sentence that equals a sentence of a passage or a whole passage is supported. Otherwise it is
unsupported if a clause and the nearest clauses of the passages differ by a negation or an opposite
(`evidence.polarity`). Without such a difference it is supported if

(1) a passage contains the sentence word for word, or
(2) all of the following hold:
    - the passages have every number of the sentence, with the same unit, and not rather for
      something else (`evidence.amounts`),
    - the passages contain every name, link and mail address of the sentence,
    - every specific word of the sentence is in the passages, or one related to it, or a synonym
      (`evidence.wording`); a language without such rules needs the share `MOST_WORDS` below,
    - the passages contain at least the share `LEAST_WORDS` of its content words; or a lower share
      of at least `FEW_WORDS`, and a passage sentence has a cosine of at least `ALIKE` to it.

The shares were chosen on half of the replies in tests/data/grounding; docs/quality.md has the rates
of both halves. A cosine alone is not enough: the local embedder gives `leave lasts 20 weeks and
includes a bonus` the same cosine to `leave lasts 20 weeks` (.94) as a paraphrase.
"""

import re
from collections.abc import Sequence

from callslip.errors import EmbedderDown
from callslip.models.embedders.contract import Embedder
from callslip.models.text.analyzer import Analyzer
from callslip.retrieval.evidence import amounts, wording
from callslip.retrieval.evidence.clauses import claims_of, clauses, commands, terms
from callslip.retrieval.evidence.polarity import contradicted
from callslip.retrieval.evidence.sentences import sentences

LEAST_WORDS, MOST_WORDS = 0.4, 0.7
"""Shares of a sentence's content words that its passages contain: in a language with rules for
specific words, and in another."""

FEW_WORDS = 0.25
"""The least such share of a sentence that is supported by its meaning."""

ALIKE = 0.9
"""The minimum cosine, with the local embedder, of two sentences of nearly the same meaning."""

_NAME = re.compile(r"(?<=[\w,;:'’\"”)(“] )[\"“(]*([A-Z][\w-]*)")
"""A capitalized word that does not start a sentence."""

_ADDRESS = re.compile(r"\S*(?:://|www\.|\]\(|</?[A-Za-z]|\w@\w)\S*")
"""Links, markup and mail addresses."""


def grounded(
    sentence: str,
    passages: Sequence[str],
    analyzer: Analyzer,
    embedder: Embedder,
    names: Sequence[str] = (),
    titles: Sequence[str] = (),
) -> bool:
    """Whether the passages support the sentence; false if there are no passages.

    `names` are names in the sentence. `titles` are titles and headings of the passages: a sentence
    may use their words, but they support nothing. Without an answer from the embedder the decision
    rests on words alone.
    """
    if not any(map(str.isalnum, sentence)) or commands(sentence, analyzer.codes):
        return False
    parts = [p[start:end] for p in passages for start, end in sentences(p)]
    parts = [part for part in parts if not commands(part, analyzer.codes)]
    whole = [p for p in passages if not commands(p, analyzer.codes)]
    if any(_squeezed(sentence) == _squeezed(each) for each in (*parts, *whole)):
        return True
    own, others = clauses(sentence, analyzer), [clauses(part, analyzer) for part in parts]
    if not parts or contradicted(own, others, analyzer.codes):
        return False
    if any(_stands_in(sentence, each) for each in (*parts, *whole)):
        return True
    around = [*parts, *titles]
    claimed = [*_NAME.findall(sentence), *_ADDRESS.findall(sentence), *names]
    if amounts.unsupported(own, others) or _unnamed(claimed, around):
        return False
    stated = terms(others)
    known = stated | terms([clauses(title, analyzer) for title in titles])
    if wording.foreign(sentence, known, "".join("".join(around).split()), analyzer):
        return False
    share = wording.share(own, stated)
    has_rules = claims_of(sentence, analyzer.codes).specific is not None
    if share >= (LEAST_WORDS if has_rules else MOST_WORDS):
        return True
    return share >= FEW_WORDS and _alike(sentence, parts, embedder)


def _alike(sentence: str, parts: Sequence[str], embedder: Embedder) -> bool:
    if embedder.lexical_only:
        return False
    try:
        cosines = embedder.passages(parts) @ embedder.passages([sentence])[0]
    except EmbedderDown:
        return False
    return bool(cosines.max() >= ALIKE)


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


def _unnamed(names: Sequence[str], passages: Sequence[str]) -> bool:
    """Whether none of the passages contains one of the names."""
    squeezed = [_squeezed(passage) for passage in passages]
    return any(not any(_squeezed(name) in each for each in squeezed) for name in names)


def _squeezed(text: str) -> str:
    return "".join(text.split()).casefold()
