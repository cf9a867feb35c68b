"""The sentences of passages that answer a question best, word for word.

A sentence is worth the share of the question's words that it says, rare ones counting more, and
twice its cosine to the question: of the answers of half of en_xquad the best sentence of the right
passage holds .82 without the cosine and .83 with it, the best two .91 and .93.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from callslip.errors import EmbedderDown
from models.analyzer import Analyzer
from models.embedder import Embedder
from retrieval.messages import Hit, Span
from retrieval.sentences import sentences
from retrieval.shares import covered, jaccard
from stores.records import Vector

MEANING = 2.0
"""What a cosine of 1 is worth, in shares of the question's words."""

EMBEDDED = 6
"""Sentences whose cosine is taken, those with most of the question's words; 5 to 10 ms each."""

LONGEST = 300
"""Characters of a sentence that are embedded: a page without a full stop is one sentence."""

NEAR = 0.97
"""A further sentence is worth at least so much of the best one."""

SHORTEST = 12
"""Characters of a sentence that says something; shorter ones are headings and list marks."""


_QUESTION = re.compile(r"[?？][\"'”’)*]*$")
_NUMBERED = re.compile(r"^((?:\d+\.)+\d*)\s+(?![a-z])[^.!?\n]{1,60}$")
"""A heading that is known by its number, or an entry of a list; not `3.5 euros`."""


@dataclass(frozen=True)
class Extract:
    """A sentence of a hit. `span` is of the document's extracted text."""

    hit: Hit
    span: Span
    text: str
    worth: float


@dataclass(frozen=True)
class Asked:
    """What sentences are held against: the idf of the question's terms, and its vector."""

    idf: dict[str, float]
    vector: Vector | None


def extracts(
    hits: Sequence[Hit], asked: Asked, analyzer: Analyzer, embedder: Embedder, most: int
) -> list[Extract]:
    """At most so many sentences of these hits, best first; the first has the most to say.

    Questions and headings are no answers: what follows them has their worth. None where the hits
    have nothing else.
    """
    said = [extract for hit in hits for extract in _of(hit, asked, analyzer)]
    said.sort(key=lambda e: -e.worth)
    if asked.vector is not None and len(said) > 1:
        said = _by_meaning(said[:EMBEDDED], asked.vector, embedder)
    if not said:
        return []
    least = NEAR * said[0].worth
    return [e for i, e in enumerate(said[:most]) if i == 0 or e.worth >= least]


def _by_meaning(said: list[Extract], vector: Vector, embedder: Embedder) -> list[Extract]:
    """With what their cosine is worth; as they are where the embedder does not answer by now."""
    try:
        cosines = embedder.passages([e.text[:LONGEST] for e in said]) @ vector
    except EmbedderDown:
        return said
    with_meaning = [
        replace(e, worth=e.worth + MEANING * float(cosine))
        for e, cosine in zip(said, cosines, strict=True)
    ]
    return sorted(with_meaning, key=lambda e: -e.worth)


def _of(hit: Hit, asked: Asked, analyzer: Analyzer) -> list[Extract]:
    """The sentences of a hit with their words' worth; what follows a question answers that."""
    found, before = [], 0.0
    spans = sentences(hit.text)
    texts = [hit.text[start:end] for start, end in spans]
    headings = {_bare(part) for part in (hit.heading, hit.title, *hit.section.split("/"))}
    depths = [_depth(text) for text in texts]
    for at, ((start, end), text) in enumerate(zip(spans, texts, strict=True)):
        worth = covered(asked.idf, frozenset(analyzer.analyze(text).split()))
        if _bare(text) in headings or _QUESTION.search(text) or _heads(at, depths):
            before = max(before, worth)
            continue
        span = Span(start=hit.span.start + start, end=hit.span.start + end)
        if len(text) >= SHORTEST:
            worth, before = max(worth, before), 0.0
        elif any(map(str.isdigit, text)):  # `20 weeks.`
            worth, before = before, 0.0
        else:  # `Yes.`, and then why
            worth = 0.0
        found.append(Extract(hit, span, text, worth))
    return found


def _depth(text: str) -> int:
    """How many numbers a heading, or an entry of a list, begins with; 0 where it is neither."""
    found = _NUMBERED.match(text)
    return found[1].rstrip(".").count(".") + 1 if found else 0


def _heads(at: int, depths: Sequence[int]) -> bool:
    """Whether it is a heading: of numbered lines beside each other, those of a depth are a list."""
    beside = (*depths[max(0, at - 1) : at], *depths[at + 1 : at + 2])
    return depths[at] > 0 and depths[at] not in beside


def _bare(text: str) -> str:
    return "".join(filter(str.isalnum, text)).casefold()


def nearest(said: str, hit: Hit, analyzer: Analyzer) -> Span:
    """Where in a hit the sentence stands that shares most terms with what is said of it."""
    wanted = set(analyzer.analyze(said).split())
    best, most = Span(start=hit.span.start, end=hit.span.end), 0.0
    for start, end in sentences(hit.text):
        terms = set(analyzer.analyze(hit.text[start:end]).split())
        shared = jaccard(terms, wanted)
        if shared > most:
            best, most = Span(start=hit.span.start + start, end=hit.span.start + end), shared
    return best
