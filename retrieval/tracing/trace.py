"""A trace: how one search produced its hits, in numbers (specification 003 §10).

A trace names documents and chunks by id. It has the question's text, entities and vector for
learning from the search; they are stored or shown only if the collection's settings allow that.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from callslip.retrieval.ranking.features import Features
from callslip.retrieval.ranking.memory import Explored
from callslip.stores.fusion import Fusion, RetrieverScore
from callslip.stores.records import Vector


@dataclass(frozen=True)
class Question:
    """The question; `vector` has the shape (dimension,), None without the vector retriever."""

    text: str = field(repr=False)
    lang: str = ""
    intent: str = ""
    entities: tuple[str, ...] = field(default=(), repr=False)
    vector: Vector | None = field(default=None, repr=False)


@dataclass(frozen=True)
class TraceBranch:
    """A branch: the facet values of its filter, its chunk count, and if it was searched."""

    facets: Mapping[str, str]
    count: int
    chosen: bool


@dataclass(frozen=True)
class TraceHit:
    """A hit with the parts of its score: `parts` maps the name of each stage to its addend.

    `rank_before` is the rank before prior and memory.
    """

    chunk_id: str
    document_id: str
    rank: int
    rank_before: int
    score: float
    parts: Mapping[str, float]
    vector: RetrieverScore | None = None
    keyword: RetrieverScore | None = None

    @property
    def components(self) -> dict[str, float]:
        """The parts of the score and the retrievers' raw scores, on which weights are fitted."""
        retrievers = {"vector": self.vector, "keyword": self.keyword}
        raw = {name: score.score for name, score in retrievers.items() if score is not None}
        return {**raw, **self.parts, "score": self.score}


@dataclass(frozen=True)
class Trace:
    """The trace of one search. `timings` are milliseconds by stage; `at` is seconds since 1970.

    `owner` names the reader who searched; it is empty for a caller who may read everything. `stamp`
    is the corpus version, `removed` the number of candidates that each filter removed,
    `facet_weights` the weight of each value by facet. `basis` returns the features of the hits, and
    then of candidates that were not shown; it is called when the trace is recorded, so that no
    response waits for it. `matched` is the reason for `alpha`, None if it was set. `cited` are the
    chunks that an answer cites, in the order of its citations, and `answer` is the agent's record
    of that answer, None for a plain search.
    """

    trace_id: str
    collection: str
    tenant: str
    question: Question
    stamp: str
    timings: Mapping[str, float]
    alpha: float
    fusion: Fusion
    hits: tuple[TraceHit, ...]
    owner: str = ""
    matched: Mapping[str, float] | None = None
    candidates: int = 0
    hotset: bool = False
    as_of: str | None = None
    facet_weights: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    branches: tuple[TraceBranch, ...] = ()
    removed: Mapping[str, int] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    explored: Explored | None = None
    basis: Callable[[], Sequence[Features]] = tuple
    cited: tuple[str, ...] = ()
    answer: Mapping[str, Any] | None = None
    at: float = field(default_factory=time.time)

    @property
    def owned(self) -> dict[str, str]:
        """The owner as a field, if there is one."""
        return {"owner": self.owner} if self.owner else {}

    def as_json(self, *, with_question: bool) -> dict[str, Any]:
        """The trace as JSON values; the question's text and entities only if `with_question`."""
        question: dict[str, Any] = {"lang": self.question.lang, "intent": self.question.intent}
        if with_question:
            question |= {"text": self.question.text, "entities": list(self.question.entities)}
        return {
            "trace_id": self.trace_id,
            "at": self.at,
            "collection": self.collection,
            "tenant": self.tenant,
            "question": question,
            "stamp": self.stamp,
            "timings": dict(self.timings),
            "alpha": self.alpha,
            "matched": self.matched,
            "fusion": self.fusion,
            "as_of": self.as_of,
            "candidates": self.candidates,
            "hotset": self.hotset,
            "removed": dict(self.removed),
            "left_out": dict(self.left_out),
            "facet_weights": {name: dict(w) for name, w in self.facet_weights.items()},
            "branches": [
                branch.__dict__ | {"facets": dict(branch.facets)} for branch in self.branches
            ],
            "explored": self.explored and self.explored.__dict__,
            "hits": [_hit(hit) for hit in self.hits],
            "answer": self.answer and dict(self.answer),
            **self.owned,
        }


def _hit(hit: TraceHit) -> dict[str, Any]:
    retrievers = {"vector": hit.vector, "keyword": hit.keyword}
    scores = {name: score and score._asdict() for name, score in retrievers.items()}
    return hit.__dict__ | scores | {"parts": dict(hit.parts)}
