"""Do the passages that were found answer the question? Three numbers, and what they say together.

    confidence = σ(w · (content, coverage, margin) + b)

`content` is what the best passage is worth, `.4 · vector + .6 · keyword`, each held against the
collection (`retrieval.background`). `coverage` is the share of the question's words that it says,
rare ones counting more. `margin` is how far `content` lies above that of the best passage of any
other document that does not say the same: where something answers, it stands out. The weights are
a logistic regression on judged sets of which half the answers were taken out; docs/quality.md has
the curve. Half of the questions had an answer there; b is shifted so that three of four have one,
the odds of a threshold of .75, and lowered until a tenth of those without one passed.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import Stemmer

from models.language import FUNCTION_WORDS
from retrieval.background import LEAST, Background
from retrieval.scored import Scored
from retrieval.search import Search
from retrieval.shares import covered, jaccard
from stores.fusion import DEVIATIONS, Candidate
from stores.metrics import scores
from stores.records import Vector

VECTOR, KEYWORD = 0.4, 0.6

LEAST_DEVIATION = 0.012
"""Of cosines: the least seen for questions to four judged sets. Below it passages are copies."""

READ = 20
"""Candidates that are held against the best one."""

SAME = 0.9
"""Passages that share so much of their terms say the same, and are no rivals."""

ODDS = math.log(3.0)

FUNCTION_TERMS = frozenset(Stemmer.Stemmer("porter").stemWords(sorted(FUNCTION_WORDS)))


class Weights(NamedTuple):
    """Of the three numbers, and what is added."""

    content: float
    coverage: float
    margin: float
    bias: float


BOTH = Weights(3.95, 2.6, 8.5, -4.6 + ODDS)
WORDS_ALONE = Weights(3.3, 3.0, 15.7, -3.5 + ODDS)
"""Where no vector was searched: `content` and `margin` are of the keyword leg."""

SMALL = Weights(0.0, 10.0, 0.0, -6.5 + ODDS)
"""Of fewer than LEAST passages, which do not say what a score is worth: two thirds of the words of
the question's topic must be said. Chosen, not fitted."""


@dataclass(frozen=True)
class Evidence:
    """What speaks for the best passages: the three numbers, each from 0 to about 1."""

    content: float
    coverage: float
    margin: float
    by: Weights = BOTH

    @property
    def logit(self) -> float:
        """The log odds that they answer the question."""
        w = self.by
        told = w.content * self.content + w.coverage * self.coverage + w.margin * self.margin
        return told + w.bias

    @property
    def confidence(self) -> float:
        """The probability that they answer the question, in [0, 1]."""
        return sigmoid(self.logit)


NONE = Evidence(0.0, 0.0, 0.0)
"""Where nothing was found."""


def sigmoid(logit: float) -> float:
    """The probability that has these log odds."""
    return 1 / (1 + math.exp(-max(-60.0, min(60.0, logit))))


def evidence(search: Search, cited: Sequence[str]) -> Evidence:
    """What speaks for the passages of these chunk ids, the best first, of a search that ranked.

    Others of the same document are no rivals, unless it is the only one.
    """
    if not cited or not search.ranked:
        return NONE
    read = search.ranked[:READ]
    held = [s for s in search.ranked if s.chunk_id in set(cited)]
    ids = dict.fromkeys(s.chunk_id for s in (*read, *held))
    terms = {i: frozenset(text.split()) for i, text in search.terms_of(list(ids)).items()}
    background = search.background()
    worth = _Worth(search, background)
    best = max(held, key=worth.of, default=None)
    if best is None:
        return NONE
    document = search.found.places[best.chunk_id].document_id
    mine = terms.get(best.chunk_id, frozenset())
    others = [s for s in read if search.found.places[s.chunk_id].document_id != document]
    rivals = [
        worth.of(s)
        for s in others or [s for s in read if s not in held]
        if jaccard(terms.get(s.chunk_id, frozenset()), mine) < SAME
    ]
    said: frozenset[str] = frozenset().union(*(terms.get(s.chunk_id, ()) for s in held))
    content = worth.of(best)
    return Evidence(
        round(content, 4),
        round(covered(weighed(background, search.terms), said), 4),
        round(content - max(rivals, default=0.0), 4),
        _weights(search, background),
    )


def _weights(search: Search, background: Background) -> Weights:
    if background.sample < LEAST:
        return SMALL
    return BOTH if search.vector is not None and search.alpha > 0 else WORDS_ALONE


def weighed(background: Background, terms: str) -> dict[str, float]:
    """The question's terms but for function words, by what each says.

    That is its inverse document frequency, or 1 in a collection too small to know it.
    """
    topic = " ".join(term for term in terms.split() if term not in FUNCTION_TERMS) or terms
    if background.sample < LEAST:
        return dict.fromkeys(topic.split(), 1.0)
    return background.idf(topic)


class _Worth:
    """What candidates are worth by themselves, whatever the fusion that ranked them."""

    def __init__(self, search: Search, background: Background) -> None:
        self._most = background.most(search.terms) if search.store.keyword_score == "bm25" else 1.0
        found = search.found.candidates
        legs = [c.vector.score for c in found if c.vector is not None]
        self._floor = min(legs, default=0.0)
        self._mean, self._deviation = 0.0, 0.0
        rows = background.vectors.get(search.plan.vector_name)
        if search.vector is not None and search.alpha > 0 and rows is not None:
            self._hold_against(search, search.vector, rows)

    def _hold_against(self, search: Search, vector: Vector, rows: Vector) -> None:
        spec = search.store.schema(search.plan.collection).vector(search.plan.vector_name)
        metric = search.plan.method or spec.metric
        sample = scores(metric, vector, rows)
        self._mean, self._deviation = float(sample.mean()), float(sample.std())
        if metric == "cosine":
            self._deviation = max(self._deviation, LEAST_DEVIATION)

    def of(self, scored: Scored) -> float:
        """Of one candidate."""
        return VECTOR * self._vector(scored.candidate) + KEYWORD * self._keyword(scored.candidate)

    def _vector(self, candidate: Candidate) -> float:
        if not self._deviation:
            return 0.0
        score = candidate.vector.score if candidate.vector is not None else self._floor
        return min(1.5, (score - self._mean) / (DEVIATIONS * self._deviation))

    def _keyword(self, candidate: Candidate) -> float:
        if candidate.keyword is None or not self._most:
            return 0.0
        return candidate.keyword.score / self._most
