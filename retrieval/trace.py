"""A trace: how one search came to its hits, in numbers (specification 003 §10).

It names documents and chunks by id. The question's text, entities and vector are in it for
what is learned from the search, and leave it only where the collection keeps them.
"""

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from retrieval.basis import Basis
from retrieval.memory import Explored
from stores.fusion import Fusion, LegScore
from stores.records import Vector


@dataclass(frozen=True)
class Question:
    """What was asked. `vector` has shape (dimension,); None where the keyword leg was alone."""

    text: str = field(repr=False)
    lang: str = ""
    intent: str = ""
    entities: tuple[str, ...] = field(default=(), repr=False)
    vector: Vector | None = field(default=None, repr=False)


@dataclass(frozen=True)
class TraceBranch:
    """A narrowed search: the facets it asks for, how many chunks these have, whether it ran."""

    facets: Mapping[str, str]
    count: int
    chosen: bool


@dataclass(frozen=True)
class TraceHit:
    """A hit with all that made its score: `parts` is what each stage added, by name.

    `rank_before` is where it stood before prior and memory.
    """

    chunk_id: str
    document_id: str
    rank: int
    rank_before: int
    score: float
    parts: Mapping[str, float]
    vector: LegScore | None = None
    keyword: LegScore | None = None

    @property
    def components(self) -> dict[str, float]:
        """The parts with the raw scores of the legs: what weights can be fitted on."""
        legs = {"vector": self.vector, "keyword": self.keyword}
        raw = {name: leg.score for name, leg in legs.items() if leg is not None}
        return {**raw, **self.parts, "score": self.score}


@dataclass(frozen=True)
class Trace:
    """One search. Times of `timings` are milliseconds by stage; `at` is seconds since 1970.

    `stamp` says in which state the corpus was, `removed` how many candidates each filter or clamp
    took away, `facet_weights` the weight of each value by facet. `basis` gives that of the hits
    and then of candidates that were not shown; it is made when it is recorded, as answers wait for
    no part of that. `cited` are the chunks that an answer cites, by the numbers of its citations,
    and `answer` is how the agent came to that answer, where one asked.
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
    candidates: int = 0
    hotset: bool = False
    as_of: str | None = None
    facet_weights: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    branches: tuple[TraceBranch, ...] = ()
    removed: Mapping[str, int] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    explored: Explored | None = None
    basis: Callable[[], Sequence[Basis]] = tuple
    cited: tuple[str, ...] = ()
    answer: Mapping[str, Any] | None = None
    at: float = field(default_factory=time.time)

    def as_json(self, *, with_question: bool) -> dict[str, Any]:
        """All of it for JSON; the question's text and entities only where asked for."""
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
        }


def new_id() -> str:
    """An id that no other trace has: 32 hexadecimal digits."""
    return uuid.uuid4().hex


def _hit(hit: TraceHit) -> dict[str, Any]:
    legs = {"vector": hit.vector, "keyword": hit.keyword}
    told = {name: leg and leg._asdict() for name, leg in legs.items()}
    return hit.__dict__ | told | {"parts": dict(hit.parts)}
