"""Ways of searching that are measured: what a request says beside its question."""

import time
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Literal

from callslip.errors import CallslipError, EvaluationError, TraceNotFound
from evals.beir import JudgedSet
from evals.client import Desk
from evals.tables import tell

POLL_SECONDS = 0.5

RECORDED_SECONDS = 60.0
"""For what is recorded beside the answers to catch up with them."""

FACETS_SECONDS = 1800.0
"""For all facets of a collection; the maintenance worker embeds up to 500 values of each."""

SHOWN = 20
"""Hits that somebody looks through for what answers a query, to say that it did."""

Prepare = Callable[[Desk, str, JudgedSet, Mapping[str, str]], JudgedSet]
"""What happens to a collection first, by its name and the desk's document ids to the set's.

It gives the queries to be measured: those that it learned from are no test of it. What cannot be
done there is a PermanentError.
"""


def _as_it_is(desk: Desk, collection: str, judged: JudgedSet, ids: Mapping[str, str]) -> JudgedSet:
    return judged


def _leave(desk: Desk, collection: str) -> None:
    """Nothing was done that would have to be undone."""


@dataclass(frozen=True)
class Way:
    """One way of searching.

    `top` is the number of hits asked for. `at_time` sends the `as_of` of a query that has one.
    `needs` names what a desk may lack, so that its answers would be those of another way. `undo`
    takes back what `prepare` did that other searches would see.
    """

    name: str
    body: Mapping[str, Any] = field(default_factory=dict)
    top: int = 100
    at_time: bool = True
    needs: Literal["vectors", "reranker"] | None = None
    prepare: Prepare = _as_it_is
    undo: Callable[[Desk, str], None] = _leave

    def lacks(self, answer: Mapping[str, Any]) -> bool:
        """Whether the desk answered without what this needs."""
        if self.needs == "vectors":
            return bool(answer["alpha"] == 0)
        if self.needs == "reranker":
            return "rerank" not in answer["timings"] and "rerank" not in answer["left_out"]
        return False


def rebuild_facets(
    desk: Desk, collection: str, judged: JudgedSet, ids: Mapping[str, str]
) -> JudgedSet:
    """Rebuild the vectors of all facet values and wait for it; all queries are measured.

    Raises EvaluationError where a facet fails or it takes longer than FACETS_SECONDS.
    """
    path = f"/v1/collections/{collection}/facets"
    asked = desk.post(f"{path}/rebuild", {"facet": "all"})
    ends = time.monotonic() + FACETS_SECONDS
    while time.monotonic() < ends:
        facets = [f for f in desk.get(path, limit=0)["facets"] if f["run"] == asked["run"]]
        for facet in facets:
            if error := facet["error"]:
                raise EvaluationError(f"facet {facet['name']!r}: {error['detail']}")
        if sum(facet["ended_at"] is not None for facet in facets) == len(asked["facets"]):
            return judged
        time.sleep(POLL_SECONDS)
    raise EvaluationError(f"facets were not rebuilt within {FACETS_SECONDS:.0f} s")


def teach_half_of_the_queries(
    desk: Desk, collection: str, judged: JudgedSet, ids: Mapping[str, str]
) -> JudgedSet:
    """Every second query is answered and its answers validated; the others are measured.

    Raises EvaluationError where something is remembered already: it is neither to be measured nor
    to be forgotten.
    """
    return _taught(desk, collection, judged.half(0), judged.half(1), ids)


def teach_half_of_the_answers(
    desk: Desk, collection: str, judged: JudgedSet, ids: Mapping[str, str]
) -> JudgedSet:
    """Every second answer is validated by all its queries; measured are those of the others alone.

    Raises EvaluationError as teach_half_of_the_queries does.
    """
    answers = {query: _answers(judged, query) for query in judged.queries}
    known = set(list(dict.fromkeys(a for found in answers.values() for a in sorted(found)))[::2])
    related = {query for query, found in answers.items() if found & known}
    others = judged.only(set(answers) - related)
    return _taught(desk, collection, judged.only(related), others, ids, known)


def forget(desk: Desk, collection: str) -> None:
    """Reset what was taught."""
    desk.post(f"/v1/collections/{collection}/memory/reset", {})


def _answers(judged: JudgedSet, query: str) -> set[str]:
    return {document_id for document_id, grade in judged.qrels[query].items() if grade > 0}


def _taught(
    desk: Desk,
    collection: str,
    judged: JudgedSet,
    others: JudgedSet,
    ids: Mapping[str, str],
    known: AbstractSet[str] | None = None,
) -> JudgedSet:
    """Ask each query and validate the best passage of each document that answers it, as users do.

    Of `known` alone, where it is given; each by a user of its own, so that no limit for one counts.
    """
    if not others.queries:
        raise EvaluationError("too few queries to learn from some and to measure others")
    if desk.get(f"/v1/collections/{collection}/memory", limit=1)["chunks"]:
        raise EvaluationError(f"{collection!r} remembers something already")
    tell(f"{judged.name}: {len(judged.queries):,} queries are taught")

    def teach(number: int, query: str) -> None:
        body = {"collection": collection, "query": judged.queries[query], "top": SHOWN}
        at = {"as_of": judged.as_of[query]} if query in judged.as_of else {}
        answer = desk.search({**body, **at, **HYBRID.body})
        right = _answers(judged, query) & (known or set(ids.values()))
        best: dict[str, str] = {}
        for hit in answer["hits"]:
            if (document_id := ids[hit["document_id"]]) in right:
                best.setdefault(document_id, hit["chunk_id"])
        if best:
            said = {"trace_id": answer["trace_id"], "chunk_ids": list(best.values())}
            _say(desk, {**said, "verdict": "validated", "user": f"query {number}"})

    try:
        with ThreadPoolExecutor(desk.connections) as pool:
            list(pool.map(teach, range(len(judged.queries)), judged.queries))
    except CallslipError:
        forget(desk, collection)
        raise
    return others


def _say(desk: Desk, feedback: dict[str, Any]) -> None:
    """Give feedback on a search, which is recorded beside its answer, later where many came."""
    ends = time.monotonic() + RECORDED_SECONDS
    while True:
        try:
            desk.post("/v1/feedback", feedback)
        except TraceNotFound:
            if time.monotonic() > ends:
                raise
            time.sleep(POLL_SECONDS)
        else:
            return


def _ranking(**more: Any) -> dict[str, Any]:
    """Neither prior, memory nor reranker, but for what is said."""
    alone = {"facets_weight": 0, "memory_weight": 0, "exploration_ratio": 0, "rerank": False}
    return {"ranking": {name: x for name, x in (alone | more).items() if x is not None}}


_ALL_HITS = 200
"""As many as the desk gives by default, search.max_top. A hybrid search that is asked for more
than search.pool would rank from a larger pool, which is not what 10 hits come from."""

KEYWORD = Way("keyword", {"alpha": 0.0, **_ranking()}, top=_ALL_HITS)
VECTOR = Way("vector", {"alpha": 1.0, **_ranking()}, top=_ALL_HITS, needs="vectors")
DEFAULT = Way("hybrid")
"""Whatever the desk does when nothing is said."""

HYBRID = Way("hybrid", _ranking())

WAYS = (
    KEYWORD,
    VECTOR,
    HYBRID,
    Way("hybrid + prior", _ranking(facets_weight=None), prepare=rebuild_facets),
    Way("hybrid + rerank", _ranking(rerank=True), needs="reranker"),
    Way(
        "hybrid + memory",
        _ranking(memory_weight=None),
        needs="vectors",
        prepare=teach_half_of_the_queries,
        undo=forget,
    ),
    Way(
        "hybrid + memory, unrelated",
        _ranking(memory_weight=None),
        needs="vectors",
        prepare=teach_half_of_the_answers,
        undo=forget,
    ),
)
"""Each part by itself on top of HYBRID, with the desk's own weights."""

ANY_TIME = Way("hybrid, any time", {"as_of": "any", **_ranking()}, at_time=False)
"""Of sets whose queries have an `as_of`: without it."""
