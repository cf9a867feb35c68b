"""A second, narrower look where a question names facets: among the documents that have them."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from retrieval.facet_weights import Weights
from stores.contract import Store
from stores.filters import Condition, Where
from stores.fusion import Candidate

FEWEST, MOST = 80, 300
"""Chunks that a branch is to hold: of fewer the first look has all that matter, more are no
narrowing (specification 003, §7)."""

LEAST = 0.5
"""A facet value with a smaller weight is a guess."""

LIMIT = 200
"""Candidates of the narrowed search."""


@dataclass(frozen=True)
class Branch:
    """Facets that a question names, and how many chunks have them all."""

    facets: dict[str, str]
    where: Where
    count: int = 0


def propose(weights: Weights, where: Where | None) -> list[Branch]:
    """One to three facet sets, the narrowest first; none where no facet is sure.

    All sure facets together, then each of the two surest alone. Facets whose property is not
    what a chunk was given, as the last heading of a section, cannot be filtered by.
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
    """The branches with their numbers of chunks, counted side by side."""

    def counted(branch: Branch) -> Branch:
        found = store.count(collection, branch.where, tenant=tenant)
        return replace(branch, count=found)

    return list(pool.map(counted, branches))


def choose(branches: Sequence[Branch]) -> Branch | None:
    """The narrowest branch of FEWEST to MOST chunks, else the smallest that is larger."""
    fitting = [branch for branch in branches if FEWEST <= branch.count <= MOST]
    larger = sorted((b for b in branches if b.count > MOST), key=lambda b: b.count)
    return next(iter([*fitting, *larger]), None)


def merged(first: Sequence[Candidate], second: Sequence[Candidate]) -> list[Candidate]:
    """Candidates of two searches for one question, whose scores mean the same; best first."""
    best: dict[str, Candidate] = {}
    for candidate in (*first, *second):
        known = best.get(candidate.chunk_id)
        if known is None or candidate.score > known.score:
            best[candidate.chunk_id] = candidate
    return sorted(best.values(), key=lambda c: (-c.score, c.chunk_id))


def _narrowed(where: Where | None, facets: dict[str, str]) -> Where:
    conditions = tuple(Condition(facet, "==", value) for facet, value in sorted(facets.items()))
    return Where((*(where.every if where else ()), *conditions), where.some if where else ())
