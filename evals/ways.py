"""Ways of searching that are measured: what a request says beside its question."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from callslip.errors import EvaluationError
from evals.beir import JudgedSet
from evals.client import Desk

POLL_SECONDS = 0.5

FACETS_SECONDS = 1800.0
"""For all facets of a collection; the maintenance worker embeds up to 500 values of each."""

Prepare = Callable[[Desk, str, JudgedSet, Mapping[str, str]], JudgedSet]
"""What happens to a collection first, by its name and the desk's document ids to the set's.

It gives the queries to be measured: those that it learned from are no test of it. What cannot be
done there is a PermanentError.
"""


def _as_it_is(desk: Desk, collection: str, judged: JudgedSet, ids: Mapping[str, str]) -> JudgedSet:
    return judged


@dataclass(frozen=True)
class Way:
    """One way of searching.

    `top` is the number of hits asked for. `at_time` sends the `as_of` of a query that has one.
    `needs` names what a desk may lack, so that its answers would be those of another way.
    """

    name: str
    body: Mapping[str, Any] = field(default_factory=dict)
    top: int = 100
    at_time: bool = True
    needs: Literal["vectors", "reranker"] | None = None
    prepare: Prepare = _as_it_is

    def lacks(self, answer: Mapping[str, Any]) -> bool:
        """Whether the desk answered without what this needs."""
        if self.needs == "vectors":
            return bool(answer["alpha"] != self.body["alpha"])
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
)
"""Each part by itself on top of HYBRID, with the desk's own weights."""

ANY_TIME = Way("hybrid, any time", {"as_of": "any", **_ranking()}, at_time=False)
"""Of sets whose queries have an `as_of`: without it."""
