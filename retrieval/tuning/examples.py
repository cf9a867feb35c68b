"""Questions with known answers, packed in arrays so that any weights can be evaluated on all."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from callslip.retrieval.ranking.features import Features
from callslip.retrieval.tuning.bootstrap import Floats, Integers
from callslip.stores.fusion import Fusion
from callslip.stores.records import Vector

DEPTH = 10

ALIKE = 0.95
"""The minimum cosine of two questions that count as the same question in other words."""

ROWS_TOGETHER = 512


@dataclass(frozen=True)
class Weights:
    """The weights of the linear score, with the names of the ranking parameters.

    If `alpha` is None, each search has the alpha that was chosen for its question.
    """

    alpha: float | None
    proximity: float
    facets_weight: float
    memory_weight: float

    def scores(self, rows: Floats, chosen: Floats) -> Floats:
        """The score of each row of features: shape (rows,).

        `rows` has the shape (rows, 6). `chosen` has the alpha of the search of each row.
        """
        alpha = chosen if self.alpha is None else self.alpha
        words = rows[:, 1] + self.proximity * rows[:, 2]
        others = self.facets_weight * rows[:, 3] + self.memory_weight * rows[:, 4] + rows[:, 5]
        scores: Floats = alpha * rows[:, 0] + (1 - alpha) * words + others
        return scores


@dataclass(frozen=True)
class Ranked:
    """The weights and the fusion that a collection uses now."""

    weights: Weights
    fusion: Fusion

    @property
    def weighs_retrievers(self) -> bool:
        """Whether alpha can be fitted."""
        alpha = self.weights.alpha
        return self.fusion == "calibrated" and (alpha is None or 0 < alpha < 1)


@dataclass(frozen=True)
class Example:
    """A search with its known answers.

    `rows` are the features of its candidates, shape (candidates, 6). `owners` maps each candidate
    to the number, from 0, of the answer whose passage it is. `grades` has the grade of each answer,
    0 if it is irrelevant, and `ideal` is the DCG@10 of the best ranking. Examples that share one of
    the `keys` belong to one question; the first key identifies it. `alpha` is the weight of the
    vector retriever by which the search was ranked. `positions` and `chances` belong
    to the answers with a grade above 0, in order: the ranks at which they were shown, and the
    probabilities of these ranks.
    """

    keys: tuple[str, ...]
    rows: Floats
    owners: Integers
    grades: Floats
    ideal: float
    alpha: float
    vector: Vector | None = None
    positions: tuple[int, ...] = ()
    chances: tuple[float, ...] = ()


def discount(ranks: Floats) -> Floats:
    """1 / log2(1 + rank) for ranks from 1 to 10, else 0."""
    return np.where(ranks <= DEPTH, 1 / np.log2(1 + ranks), 0.0)


def ideal(grades: Sequence[float]) -> float:
    """The DCG@10 of answers with these grades in the best order."""
    best = np.sort(np.asarray(grades, np.float64))[::-1]
    return float((best * discount(np.arange(1.0, len(best) + 1))).sum())


def known_rows(
    bases: Sequence[Sequence[float | None]], alpha: float, fusion: str, now: Ranked
) -> Floats | None:
    """The features of a search as numbers, 0 for an unused one; None if a needed one is missing.

    `alpha` and `fusion` are those of the recorded ranking. A feature whose weight is 0 is not
    needed. If alpha is not fitted, the recorded alpha and fusion must equal the current ones.
    """
    rows = np.array(bases, np.float64).reshape(-1, len(Features._fields))  # None becomes NaN
    w = now.weights
    needed = {"proximity": w.proximity, "facets": w.facets_weight, "memory": w.memory_weight}
    needed |= {"vector": now.weighs_retrievers, "keyword": now.weighs_retrievers}
    as_recorded = fusion == now.fusion and w.alpha in (None, alpha)
    if not now.weighs_retrievers and not as_recorded:
        return None
    missing = {name: bool(np.isnan(rows[:, n]).any()) for n, name in enumerate(Features._fields)}
    if any(missing[name] for name, weight in needed.items() if weight):
        return None
    return np.nan_to_num(rows)


def recorded(
    question: str,
    vector: Vector | None,
    bases: Sequence[Sequence[float | None]],
    helped: Sequence[int],
    explored: tuple[int, float] | None,
    ranked_by: tuple[float, str],
    now: Ranked,
) -> Example | None:
    """Make an example of a recorded search; None if a needed feature or every answer is missing.

    `helped` are ranks from 1. `explored` is the rank of the chunk that exploration drew, and the
    probability of that draw. `ranked_by` is the alpha and the fusion of the recorded ranking.
    """
    rows = known_rows(bases, *ranked_by, now)
    positions = tuple(position for position in helped if position <= len(bases))
    if rows is None or not positions:
        return None
    grades = np.zeros(len(rows))
    grades[np.array(positions) - 1] = 1.0
    tried, probability = explored or (0, 1.0)
    chances = (probability if position == tried else 1.0 for position in positions)
    best = ideal([1.0] * len(helped))
    owners = np.arange(len(rows))
    return Example(
        (question,), rows, owners, grades, best, ranked_by[0], vector, positions, tuple(chances)
    )


class Examples:
    """Examples packed in a few arrays, so that one operation computes all of them."""

    def __init__(self, examples: Sequence[Example]) -> None:
        """Raises ValueError if `examples` is empty."""
        self.count = len(examples)
        self._width = max(len(each.grades) for each in examples)
        self._rows = np.concatenate([each.rows for each in examples])
        slots = [n * self._width + each.owners for n, each in enumerate(examples)]
        order = np.argsort(np.concatenate(slots), kind="stable")
        self._rows, slot = self._rows[order], np.concatenate(slots)[order]
        self._starts = np.flatnonzero(np.diff(slot, prepend=-1))
        self._slots = slot[self._starts]
        self._of = slot // self._width
        self._alphas: Floats = np.array([each.alpha for each in examples])[self._of]
        good = [np.flatnonzero(each.grades > 0) for each in examples]
        sizes = [len(each) for each in good]
        self.of = np.repeat(np.arange(self.count), sizes)
        """The index of the example of each answer with a grade above 0."""
        self._good = self.of * self._width + np.concatenate(good)
        self._grades = np.concatenate(
            [each.grades[at] for each, at in zip(examples, good, strict=True)]
        )
        self._ideal = np.array([each.ideal for each in examples])
        self.positions = np.array(
            [position for each in examples for position in each.positions], np.int64
        )
        self.chances = np.array([chance for each in examples for chance in each.chances])
        self.groups = grouped([each.keys for each in examples], [each.vector for each in examples])
        """The index, from 0, of the question of each example: shape (count,)."""
        names = np.unique([each.keys[0] for each in examples], return_inverse=True)[1]
        self.shares: Floats = 1 / np.bincount(names)[names]
        """The weight of each example: the examples of one question have a total weight of 1."""
        self._known: dict[Weights, NDArray[np.float32]] = {}

    @cached_property
    def questions(self) -> int:
        """The number of questions."""
        return int(self.groups.max()) + 1

    def moved_by(self, column: int) -> float:
        """The share of examples whose candidates differ in this feature."""
        values, begins = self._rows[:, column], np.flatnonzero(np.diff(self._of, prepend=-1))
        spread = np.maximum.reduceat(values, begins) - np.minimum.reduceat(values, begins)
        return float((spread > 0).mean())

    def gains(self, weights: Weights) -> Floats:
        """1 / log2(1 + rank) of each answer with a grade above 0; 0 for a rank below 10.

        The rank of an answer is that of its best passage. Tied passages get the last of their
        ranks, so that weights that do not separate passages gain nothing.
        """
        scores = np.full(self.count * self._width, -np.inf)
        scores[self._slots] = np.maximum.reduceat(
            weights.scores(self._rows, self._alphas), self._starts
        )
        mine = scores[self._good][:, None]
        ranks = (scores.reshape(self.count, -1)[self.of] >= mine).sum(axis=1).astype(np.float64)
        return discount(ranks)

    def ndcg(self, weights: Weights) -> NDArray[np.float32]:
        """nDCG@10 of each example under these weights: shape (count,)."""
        if weights not in self._known:
            won = np.bincount(self.of, self._grades * self.gains(weights), self.count)
            self._known[weights] = (won / self._ideal).astype(np.float32)
        return self._known[weights]


def grouped(keys: Sequence[Sequence[str]], vectors: Sequence[Vector | None]) -> Integers:
    """Number the groups of examples, from 0; one group shares a key or has similar vectors.

    The vectors of the first keys are compared in blocks of ROWS_TOGETHER against all: 20,000
    questions take some seconds, and the memory of one block.
    """
    parent: dict[str, str] = {}

    def root(key: str) -> str:
        while (above := parent.setdefault(key, key)) != key:
            parent[key] = key = parent[above]
        return key

    firsts: dict[str, Vector] = {}
    for some, vector in zip(keys, vectors, strict=True):
        for key in some[1:]:
            parent[root(key)] = root(some[0])
        if vector is not None and (length := float(np.linalg.norm(vector))):
            firsts.setdefault(some[0], (vector / length).astype(np.float32))
    for shape in {each.shape for each in firsts.values()}:
        names = [name for name, vector in firsts.items() if vector.shape == shape]
        _join(names, np.stack([firsts[name] for name in names]), root, parent)
    roots = [root(some[0]) for some in keys]
    groups: Integers = np.unique(roots, return_inverse=True)[1].astype(np.int64)
    return groups


def _join(
    names: Sequence[str], rows: Vector, root: Callable[[str], str], parent: dict[str, str]
) -> None:
    """Join the groups of vectors whose similarity is at least ALIKE."""
    for start in range(0, len(names), ROWS_TOGETHER):
        near = rows[start : start + ROWS_TOGETHER] @ rows[start:].T >= ALIKE
        for n, others in enumerate(near):
            mine = root(names[start + n])
            for other in np.flatnonzero(others).tolist():
                if (theirs := root(names[start + other])) != mine:
                    parent[theirs] = mine
