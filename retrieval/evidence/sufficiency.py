"""Evidence: the probability that the best passages answer the question, from up to four features.

    confidence = σ(w · (content, coverage, margin) + b)

`content` is the score of the best passage, `.4 · vector + .6 · keyword`, each calibrated against
the collection (`retrieval.candidates.calibration`). `coverage` is the share of the question's words
in the cited passages, weighted by inverse document frequency. `margin` is `content` less the
content of the best passage of any other document with other terms: a passage that answers the
question stands out. If a reader has read the passage, the confidence also needs the reader:

    confidence = σ(SEARCH_WEIGHT · logit + SEARCH_BIAS) · σ(READ_WEIGHT · read + READ_BIAS)

`logit` is the argument of σ above, and `read` the log odds that a sentence of the passage has the
answer (`models.reader`). The weights are a logistic regression on judged sets from which half of
the answers were removed, so the confidence is a probability where half of the questions have an
answer; docs/quality.md has the curve and the calibration.
"""

import math
from collections.abc import Sequence, Set
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

import Stemmer

from callslip.languages import function_words
from callslip.retrieval.candidates.calibration import LEAST, ScoreCalibration
from callslip.retrieval.candidates.retrieved import Retrieved
from callslip.retrieval.evidence.overlap import covered, jaccard
from callslip.retrieval.evidence.reading import NO_READINGS, Readings, answers
from callslip.retrieval.query.plan import Plan
from callslip.retrieval.query.question import Query
from callslip.retrieval.ranking.scored import Scored
from callslip.retrieval.ranking.stage import Ranked
from callslip.stores.contract import Store
from callslip.stores.fusion import DEVIATIONS, Candidate
from callslip.stores.records import Vector

VECTOR, KEYWORD = 0.4, 0.6

LEAST_DEVIATION = 0.012
"""The minimum standard deviation of cosines, which is the least one for questions to four judged
sets. With a smaller deviation the passages are copies."""

COMPARED = 20
"""The number of candidates that are compared with the best one."""

SAME = 0.9
"""The minimum Jaccard index of the terms of two passages that say the same and are no rivals."""

FUNCTION_TERMS = frozenset(Stemmer.Stemmer("porter").stemWords(sorted(function_words())))


class Weights(NamedTuple):
    """The weights of the three features, and the bias."""

    content: float
    coverage: float
    margin: float
    bias: float


BOTH = Weights(3.95, 2.6, 8.5, -4.4)
WORDS_ALONE = Weights(3.3, 3.0, 15.7, -3.3)
"""Weights of a search without vectors: `content` and `margin` are of the keyword retriever."""

SMALL = Weights(0.0, 10.0, 0.0, -6.3)
"""Weights for fewer than LEAST passages, which do not calibrate a score: the passages must contain
two thirds of the words of the question's topic. Chosen, not fitted."""


SEARCH_WEIGHT, SEARCH_BIAS, READ_WEIGHT, READ_BIAS = 0.832, 0.441, 1.05, 2.14
"""The weights of the two factors if there is a reader: a maximum-likelihood fit on seven sets, each
with the same weight (docs/quality.md)."""

LIMIT = 8.0
"""The maximum of the reader's log odds, and minus their minimum."""

LEAST_SHARE = 1e-9


@dataclass(frozen=True)
class Evidence:
    """The evidence for the best passages: three features, each from 0 to about 1.

    `read` has the reader's log odds of the best read passage; None if none was read.
    """

    content: float
    coverage: float
    margin: float
    by: Weights = BOTH
    read: float | None = None

    @property
    def logit(self) -> float:
        """The log odds that the passages answer the question."""
        w = self.by
        weighted = w.content * self.content + w.coverage * self.coverage + w.margin * self.margin
        by_search = weighted + w.bias
        if self.read is None:
            return by_search
        read = max(-LIMIT, min(LIMIT, self.read))
        p = sigmoid(SEARCH_WEIGHT * by_search + SEARCH_BIAS) * sigmoid(
            READ_WEIGHT * read + READ_BIAS
        )
        return math.log(p) - math.log(max(1 - p, LEAST_SHARE))

    @property
    def confidence(self) -> float:
        """The probability, in [0, 1], that the passages answer the question."""
        return sigmoid(self.logit)


NONE = Evidence(0.0, 0.0, 0.0)
"""The evidence of a search without hits."""


def sigmoid(logit: float) -> float:
    """The probability of these log odds."""
    return 1 / (1 + math.exp(-max(-60.0, min(60.0, logit))))


@dataclass(frozen=True)
class Searched:
    """A ranked search, with the calibration sample for its evidence.

    `calibration` is the sample of the collection; it does not depend on the fusion of the search.
    """

    store: Store
    plan: Plan
    query: Query
    retrieved: Retrieved
    ranked: Ranked
    calibration: ScoreCalibration

    @property
    def has_vector(self) -> bool:
        """Whether the vector retriever took part."""
        return self.query.vector is not None and self.query.alpha != 0


def evidence(
    search: Searched,
    cited: Sequence[str],
    readings: Readings = NO_READINGS,
    agreeing: Set[str] = frozenset(),
) -> Evidence:
    """Return the evidence of the passages with these chunk ids; the best passage counts.

    `readings` has the sentences' log odds of the passages that a reader has read. `agreeing` are
    the chunk ids of passages with the same answer, which are no rivals.
    The margin does not compare with other passages of the same document, unless there is no other
    document.
    """
    order, reader, query = search.ranked.order, search.retrieved.reader, search.query
    if not cited or not order:
        return NONE
    read = order[:COMPARED]
    own = [s for s in order if s.chunk_id in set(cited)]
    ids = dict.fromkeys(s.chunk_id for s in (*read, *own))
    terms = {i: frozenset(text.split()) for i, text in reader.terms(list(ids)).items()}
    worth = _Worth(search)
    best = max(own, key=worth.of, default=None)
    if best is None:
        return NONE
    document = reader.positions[best.chunk_id].document_id
    own_terms = terms.get(best.chunk_id, frozenset())
    others = [s for s in read if reader.positions[s.chunk_id].document_id != document]
    rivals = [
        worth.of(s)
        for s in others or [s for s in read if s not in own]
        if s.chunk_id not in agreeing
        and jaccard(terms.get(s.chunk_id, frozenset()), own_terms) < SAME
    ]
    covering: frozenset[str] = frozenset().union(*(terms.get(s.chunk_id, ()) for s in own))
    content = worth.of(best)
    answering = [answers(readings[each]) for each in cited if each in readings]
    return Evidence(
        round(content, 4),
        round(covered(weighed(search.calibration, query.terms), covering), 4),
        round(content - max(rivals, default=0.0), 4),
        _weights(search),
        round(max(answering), 4) if answering else None,
    )


def _weights(search: Searched) -> Weights:
    if search.calibration.sample < LEAST:
        return SMALL
    return BOTH if search.has_vector else WORDS_ALONE


def weighed(calibration: ScoreCalibration, terms: str) -> dict[str, float]:
    """The question's terms without function words, each with its inverse document frequency.

    A term that the sample lacks weighs at most as much as the median of the other terms: a rare
    word of the question need not be rare in its meaning. The weight is 1 if the collection is too
    small to estimate that frequency.
    """
    topic = " ".join(term for term in terms.split() if term not in FUNCTION_TERMS) or terms
    if calibration.sample < LEAST:
        return dict.fromkeys(topic.split(), 1.0)
    weights, frequencies = calibration.counted_idf(topic), calibration.words.of
    known = [weight for term, weight in weights.items() if term in frequencies]
    most = median(known) if known else math.inf
    return {
        term: weight if term in frequencies else min(weight, most)
        for term, weight in weights.items()
    }


class _Worth:
    """Scores the content of candidates independently of the fusion that ranked them."""

    def __init__(self, search: Searched) -> None:
        calibration, query = search.calibration, search.query
        bm25 = search.store.keyword_score == "bm25"
        searched = query.terms if search.plan.record.attached else query.keywords
        self._most = calibration.most(searched) if bm25 else 1.0
        vector_scores = [
            c.vector.score for c in search.retrieved.candidates if c.vector is not None
        ]
        self._lowest = min(vector_scores, default=0.0)
        self._mean, self._deviation = 0.0, 0.0
        sampled = search.plan.vector_name in calibration.vectors
        if query.vector is not None and search.has_vector and sampled:
            self._calibrate(search, query.vector)

    def _calibrate(self, search: Searched, vector: Vector) -> None:
        spec = search.store.schema(search.plan.collection).vector(search.plan.vector_name)
        metric = search.plan.method or spec.metric
        name = search.plan.vector_name
        self._mean, self._deviation = search.calibration.moments(vector, name, metric)
        if metric == "cosine":
            self._deviation = max(self._deviation, LEAST_DEVIATION)

    def of(self, scored: Scored) -> float:
        """Return the score of one candidate."""
        return VECTOR * self._vector(scored.candidate) + KEYWORD * self._keyword(scored.candidate)

    def _vector(self, candidate: Candidate) -> float:
        if not self._deviation:
            return 0.0
        score = candidate.vector.score if candidate.vector is not None else self._lowest
        return min(1.5, (score - self._mean) / (DEVIATIONS * self._deviation))

    def _keyword(self, candidate: Candidate) -> float:
        if candidate.keyword is None or not self._most:
            return 0.0
        return candidate.keyword.score / self._most
