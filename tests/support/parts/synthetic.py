"""Searches whose best weights are known, for tests of fitting them."""

from collections.abc import Sequence

import numpy as np

from callslip.retrieval.tuning.examples import Example, Ranked, Weights, ideal

NOW = Ranked(
    Weights(alpha=0.4, proximity=0.25, facets_weight=0.2, memory_weight=0.15), "calibrated"
)
CANDIDATES, SHOWN = 40, 10


def example(
    key: str,
    rows: np.typing.NDArray[np.float64],
    scope: int,
    good: Sequence[int],
    chance: float = 1.0,
) -> Example:
    """A search in which these candidates are the answer, the first of them shown at a place."""
    grades = np.zeros(len(rows))
    grades[list(good)] = 1
    return Example(
        (key,),
        rows,
        np.arange(len(rows)),
        grades,
        ideal(grades.tolist()),
        0.4,
        None,
        (scope,) * len(good),
        (chance,) * len(good),
    )


def candidates(chance: np.random.Generator) -> np.typing.NDArray[np.float64]:
    """Bases of candidates that say nothing: numbers of the size that they have."""
    rows = chance.uniform(0, 0.6, (CANDIDATES, 6))
    rows[:, 3:5] *= chance.random((CANDIDATES, 2)) < 0.2  # facets and memory are mostly silent
    rows[:, 5] = 0
    return rows


def logged(
    count: int,
    seed: int,
    *,
    better: float | None,
    eta: float = 0.0,
    weights: Weights = NOW.weights,
) -> list[Example]:
    """Searches as feedback leaves them: one candidate of those shown helped.

    Where `better` is an alpha, the answer is likely to be the best by that one; without one it is
    any that was shown. It is said so with the chance place^-eta.
    """
    chance = np.random.default_rng(seed)
    found: list[Example] = []
    while len(found) < count:
        rows = candidates(chance)
        order = np.argsort(-weights.scores(rows, np.full(CANDIDATES, 0.4)), kind="stable")
        scopes = np.empty(CANDIDATES, np.int64)
        scopes[order] = np.arange(1, CANDIDATES + 1)
        if better is None:
            good = int(order[chance.integers(SHOWN)])
        else:
            scores = Weights(better, 0.25, 0.2, 0.15).scores(rows, np.full(CANDIDATES, better))
            good = int(np.argmax(scores + chance.normal(0, 0.08, CANDIDATES)))
        if scopes[good] <= SHOWN and chance.random() < float(scopes[good]) ** -eta:
            found.append(example(f"q{len(found)}", rows, int(scopes[good]), [good]))
    return found
