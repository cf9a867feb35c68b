"""The second, narrower search among the chunks that have the facet values a question names."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, replace
from typing import NamedTuple

from callslip.retrieval.candidates.fusion_weight import FusionWeight
from callslip.retrieval.facets.weights import Weights
from callslip.stores.contract import Store
from callslip.stores.fusion import Candidate
from callslip.stores.properties.filters import Condition, Where

FEWEST, MOST = 80, 300
"""Bounds of a branch's chunk count (specification 003, §7). The first search already covers a
smaller branch; a larger branch narrows too little."""

LEAST = 0.5
"""The minimum weight of a facet value that may form a branch; a smaller weight is a guess."""

LIMIT = 200
"""The maximum number of candidates of the narrowed search."""


@dataclass(frozen=True)
class Branch:
    """Facet values that a question names, their filter, and the number of chunks with all of them.

    `count` is 0 until `branches.count` has set it.
    """

    facets: dict[str, str]
    where: Where
    count: int = 0


class CandidateList(NamedTuple):
    """The candidates of one search, in the form that the result cache stores.

    `branches` are the counted branches; `chosen` is the branch that was searched, or None. `weight`
    is the weight of the vector retriever in their scores.
    """

    candidates: Sequence[Candidate]
    weight: FusionWeight
    branches: Sequence[Branch] = ()
    chosen: Branch | None = None


def propose(weights: Weights, where: Where | None) -> list[Branch]:
    """Propose one to three branches, the narrowest first; none if no facet value is certain.

    A facet value is certain if its weight is at least `LEAST`. The first branch has all certain
    facets; the next branches have one facet each, of the two facets with the greatest weights. The
    facet `section` is left out: its values are last headings, which differ from the stored
    property, so that a filter cannot use them.
    """
    sure = sorted(
        (
            (weight, facet, value)
            for facet, values in weights.items()
            for value, weight in values.items()
            if weight >= LEAST and facet != "section"
        ),
        reverse=True,
    )
    best = {facet: value for _, facet, value in reversed(sure)}
    alone = [{facet: best[facet]} for facet in dict.fromkeys(facet for _, facet, _ in sure)][:2]
    sets = [best, *alone] if len(best) > 1 else alone
    return [Branch(chosen, _narrowed(where, chosen)) for chosen in sets]


def count(
    store: Store, collection: str, tenant: str, branches: Sequence[Branch], pool: ThreadPoolExecutor
) -> list[Branch]:
    """Return the branches with their chunk counts; the store counts them in parallel."""

    def counted(branch: Branch) -> Branch:
        chunks = store.count(collection, branch.where, tenant=tenant)
        return replace(branch, count=chunks)

    within = [copy_context() for _ in branches]  # of the deadline
    return list(pool.map(lambda own, branch: own.run(counted, branch), within, branches))


def choose(branches: Sequence[Branch]) -> Branch | None:
    """Return the first branch with FEWEST to MOST chunks, else the smallest larger branch.

    Returns None if every branch has fewer than FEWEST chunks.
    """
    fitting = [branch for branch in branches if FEWEST <= branch.count <= MOST]
    larger = sorted((b for b in branches if b.count > MOST), key=lambda b: b.count)
    return next(iter([*fitting, *larger]), None)


def merged(first: Sequence[Candidate], second: Sequence[Candidate]) -> list[Candidate]:
    """Merge the candidates of two searches whose scores are comparable; best first.

    A chunk that both searches returned keeps its greater score.
    """
    best: dict[str, Candidate] = {}
    for candidate in (*first, *second):
        known = best.get(candidate.chunk_id)
        if known is None or candidate.score > known.score:
            best[candidate.chunk_id] = candidate
    return sorted(best.values(), key=lambda c: (-c.score, c.chunk_id))


def _narrowed(where: Where | None, facets: dict[str, str]) -> Where:
    conditions = tuple(Condition(facet, "==", value) for facet, value in sorted(facets.items()))
    return Where((*(where.every if where else ()), *conditions), where.some if where else ())
