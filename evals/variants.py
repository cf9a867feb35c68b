"""Variants of search that are measured: the fields of a request other than its question."""

import time
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Literal

from callslip.errors import CallslipError, EvaluationError, TraceNotFound
from callslip.evals.beir import JudgedSet
from callslip.evals.client import JsonClient
from callslip.evals.tables import tell

POLL_SECONDS = 0.5

RECORDED_SECONDS = 60.0
"""The longest wait until a search is recorded, which happens after its response."""

FACETS_SECONDS = 1800.0
"""The longest time for all facets of a collection; the worker embeds up to 500 values of each."""

SHOWN = 20
"""The number of hits of which a simulated user validates those that answer the query."""

Prepare = Callable[[JsonClient, str, JudgedSet, Mapping[str, str]], JudgedSet]
"""Prepares a collection for a variant: client, collection, set, map of document ids.

Returns the set with the queries to measure: queries that the collection learned from are not among
them. Raises a PermanentError if the preparation is impossible.
"""


def _as_it_is(
    client: JsonClient, collection: str, judged: JudgedSet, ids: Mapping[str, str]
) -> JudgedSet:
    return judged


def _leave(client: JsonClient, collection: str) -> None:
    """Undo nothing, for a variant without preparation."""


@dataclass(frozen=True)
class Variant:
    """One variant of search.

    `top` is the requested number of hits. `at_time` sends the `as_of` of a query that has one.
    `needs` names a part that a server may lack, so that its responses would be those of another
    variant. `undo` reverts the effects of `prepare` on other searches.
    """

    name: str
    body: Mapping[str, Any] = field(default_factory=dict)
    top: int = 100
    at_time: bool = True
    needs: Literal["vectors", "reranker"] | None = None
    prepare: Prepare = _as_it_is
    undo: Callable[[JsonClient, str], None] = _leave

    def lacks(self, answer: Mapping[str, Any]) -> bool:
        """Whether the response was made without the part that the variant needs."""
        if self.needs == "vectors":
            return bool(answer["alpha"] == 0)
        if self.needs == "reranker":
            return "rerank" not in answer["timings"] and "rerank" not in answer["left_out"]
        return False


def rebuild_facets(
    client: JsonClient, collection: str, judged: JudgedSet, ids: Mapping[str, str]
) -> JudgedSet:
    """Rebuild the vectors of all facet values and wait; all queries are measured.

    Raises EvaluationError if a facet fails or the rebuild takes longer than FACETS_SECONDS.
    """
    path = f"/v1/collections/{collection}/facets"
    rebuild = client.post(f"{path}/rebuild", {"facet": "all"})
    ends = time.monotonic() + FACETS_SECONDS
    while time.monotonic() < ends:
        facets = [f for f in client.get(path, limit=0)["facets"] if f["run"] == rebuild["run"]]
        for facet in facets:
            if error := facet["error"]:
                raise EvaluationError(f"facet {facet['name']!r}: {error['detail']}")
        if sum(facet["ended_at"] is not None for facet in facets) == len(rebuild["facets"]):
            return judged
        time.sleep(POLL_SECONDS)
    raise EvaluationError(f"facets were not rebuilt within {FACETS_SECONDS:.0f} s")


def teach_half_of_the_queries(
    client: JsonClient, collection: str, judged: JudgedSet, ids: Mapping[str, str]
) -> JudgedSet:
    """Send `helpful` for the answers of every second query; return the other queries for measuring.

    Raises EvaluationError if the collection already has memory, which must be neither measured nor
    reset.
    """
    return _taught(client, collection, judged.half(0), judged.half(1), ids)


def teach_half_of_the_answers(
    client: JsonClient, collection: str, judged: JudgedSet, ids: Mapping[str, str]
) -> JudgedSet:
    """Send `helpful` for every second answer by all its queries; return the other queries.

    Raises EvaluationError as teach_half_of_the_queries does.
    """
    answers = {query: _answers(judged, query) for query in judged.queries}
    known = set(list(dict.fromkeys(a for right in answers.values() for a in sorted(right)))[::2])
    related = {query for query, right in answers.items() if right & known}
    others = judged.only(set(answers) - related)
    return _taught(client, collection, judged.only(related), others, ids, known)


def forget(client: JsonClient, collection: str) -> None:
    """Reset the memory of the collection."""
    client.post(f"/v1/collections/{collection}/memory/reset", {})


def _answers(judged: JudgedSet, query: str) -> set[str]:
    return {document_id for document_id, grade in judged.qrels[query].items() if grade > 0}


def _taught(
    client: JsonClient,
    collection: str,
    judged: JudgedSet,
    others: JudgedSet,
    ids: Mapping[str, str],
    known: AbstractSet[str] | None = None,
) -> JudgedSet:
    """Search each query; send `helpful` for the best passage of each relevant document.

    With `known`, only passages of these documents. Each query has its own user, so that no limit
    per user applies.
    """
    if not others.queries:
        raise EvaluationError("too few queries to learn from some and to measure others")
    if client.get(f"/v1/collections/{collection}/memory", limit=1)["chunks"]:
        raise EvaluationError(f"{collection!r} remembers something already")
    tell(f"{judged.name}: {len(judged.queries):,} queries are taught")

    def teach(number: int, query: str) -> None:
        body = {"collection": collection, "query": judged.queries[query], "top": SHOWN}
        at = {"as_of": judged.as_of[query]} if query in judged.as_of else {}
        answer = client.search({**body, **at, **HYBRID.body})
        right = _answers(judged, query) & (known or set(ids.values()))
        best: dict[str, str] = {}
        for hit in answer["hits"]:
            if (document_id := ids[hit["document_id"]]) in right:
                best.setdefault(document_id, hit["chunk_id"])
        if best:
            feedback = {"trace_id": answer["trace_id"], "chunk_ids": list(best.values())}
            _say(client, {**feedback, "verdict": "helpful", "user": f"query {number}"})

    try:
        with ThreadPoolExecutor(client.connections) as pool:
            list(pool.map(teach, range(len(judged.queries)), judged.queries))
    except CallslipError:
        forget(client, collection)
        raise
    return others


def _say(client: JsonClient, feedback: dict[str, Any]) -> None:
    """Send feedback; repeat it until the search is recorded, which happens after its response."""
    ends = time.monotonic() + RECORDED_SECONDS
    while True:
        try:
            client.post("/v1/feedback", feedback)
        except TraceNotFound:
            if time.monotonic() > ends:
                raise
            time.sleep(POLL_SECONDS)
        else:
            return


def _ranking(**more: Any) -> dict[str, Any]:
    """Ranking without prior, memory and reranker, except for the fields in `more`."""
    alone = {"facets_weight": 0, "memory_weight": 0, "exploration_ratio": 0, "rerank": False}
    return {"ranking": {name: x for name, x in (alone | more).items() if x is not None}}


_ALL_HITS = 200
"""The server's default limit, search.max_top. A hybrid search with a `top` above search.pool would
rank a larger pool of candidates than a search for 10 hits."""

KEYWORD = Variant("keyword", {"alpha": 0.0, **_ranking()}, top=_ALL_HITS)
VECTOR = Variant("vector", {"alpha": 1.0, **_ranking()}, top=_ALL_HITS, needs="vectors")
DEFAULT = Variant("hybrid")
"""The server's defaults."""

HYBRID = Variant("hybrid", _ranking())

VARIANTS = (
    KEYWORD,
    VECTOR,
    HYBRID,
    Variant("hybrid + prior", _ranking(facets_weight=None), prepare=rebuild_facets),
    Variant("hybrid + rerank", _ranking(rerank=True), needs="reranker"),
    Variant(
        "hybrid + memory",
        _ranking(memory_weight=None),
        needs="vectors",
        prepare=teach_half_of_the_queries,
        undo=forget,
    ),
    Variant(
        "hybrid + memory, unrelated",
        _ranking(memory_weight=None),
        needs="vectors",
        prepare=teach_half_of_the_answers,
        undo=forget,
    ),
)
"""Each part alone on top of HYBRID, with the server's own weights."""

ANY_TIME = Variant("hybrid, any time", {"as_of": "any", **_ranking()}, at_time=False)
"""For sets whose queries have an `as_of`: searches without it."""
