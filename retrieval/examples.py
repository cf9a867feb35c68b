"""Questions with known answers, packed so that any weights can be tried on all of them at once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from retrieval.basis import Basis
from retrieval.resampling import Floats, Integers
from stores.fusion import Fusion
from stores.records import Vector

DEPTH = 10

ALIKE = 0.95
"""Cosine from which two questions are one: the same in other words."""

ROWS_TOGETHER = 512


@dataclass(frozen=True)
class Weights:
    """The weights that a score is linear in, under the names of the knobs."""

    alpha: float
    proximity: float
    facets_weight: float
    memory_weight: float

    @property
    def column(self) -> Floats:
        """What each number of a basis counts: shape (6,)."""
        words = 1 - self.alpha
        near, facets, memory = words * self.proximity, self.facets_weight, self.memory_weight
        return np.array([self.alpha, words, near, facets, memory, 1.0])


@dataclass(frozen=True)
class Ranked:
    """What a collection runs: its weights and its fusion."""

    weights: Weights
    fusion: Fusion

    @property
    def weighs_legs(self) -> bool:
        """Whether alpha can be fitted."""
        return self.fusion == "calibrated" and 0 < self.weights.alpha < 1


@dataclass(frozen=True)
class Example:
    """A search with what answers it.

    `rows` are the bases of its candidates, shape (candidates, 6); `owners` say which answer each is
    a passage of, counted from 0; `grades` have the grade of each answer, 0 for what is none, and
    `ideal` the DCG@10 of the best ranking. Examples that share one of the `keys` are of one
    question, the first key names it. `places` and `chances` are of the answers above 0, in order:
    where they were shown, and how likely that was.
    """

    keys: tuple[str, ...]
    rows: Floats
    owners: Integers
    grades: Floats
    ideal: float
    vector: Vector | None = None
    places: tuple[int, ...] = ()
    chances: tuple[float, ...] = ()


def discount(ranks: Floats) -> Floats:
    """1 / log2(1 + rank) of ranks from 1 to 10, 0 below."""
    return np.where(ranks <= DEPTH, 1 / np.log2(1 + ranks), 0.0)


def ideal(grades: Sequence[float]) -> float:
    """The DCG@10 of answers of these grades in the best order."""
    best = np.sort(np.asarray(grades, np.float64))[::-1]
    return float((best * discount(np.arange(1.0, len(best) + 1))).sum())


def known_rows(
    bases: Sequence[Sequence[float | None]], alpha: float, fusion: str, now: Ranked
) -> Floats | None:
    """The bases of a search as numbers, 0 for what is not needed; None where one is missing.

    `alpha` and `fusion` are what it was ranked by. What a weight that is 0 would do is not needed;
    where the legs are not weighed anew they must have been weighed as they are now.
    """
    rows = np.array(bases, np.float64).reshape(-1, len(Basis._fields))  # None becomes NaN
    w = now.weights
    needed = {"proximity": w.proximity, "facets": w.facets_weight, "memory": w.memory_weight}
    needed |= {"vector": now.weighs_legs, "keyword": now.weighs_legs}
    if not now.weighs_legs and (alpha, fusion) != (w.alpha, now.fusion):
        return None
    missing = {name: bool(np.isnan(rows[:, n]).any()) for n, name in enumerate(Basis._fields)}
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
    """A recorded search as an example; None where too little is known of it.

    `helped` are places from 1; `explored` is the place of a chunk that was tried, and how likely
    that was; `ranked_by` is its alpha and fusion.
    """
    rows = known_rows(bases, *ranked_by, now)
    places = tuple(place for place in helped if place <= len(bases))
    if rows is None or not places:
        return None
    grades = np.zeros(len(rows))
    grades[np.array(places) - 1] = 1.0
    tried, probability = explored or (0, 1.0)
    chances = (probability if place == tried else 1.0 for place in places)
    best = ideal([1.0] * len(helped))
    owners = np.arange(len(rows))
    return Example((question,), rows, owners, grades, best, vector, places, tuple(chances))


class Examples:
    """Examples in few arrays: what is computed for all is computed together."""

    def __init__(self, given: Sequence[Example]) -> None:
        """Raises ValueError without an example."""
        self.count = len(given)
        self._width = max(len(each.grades) for each in given)
        self._rows = np.concatenate([each.rows for each in given])
        slots = [n * self._width + each.owners for n, each in enumerate(given)]
        order = np.argsort(np.concatenate(slots), kind="stable")
        self._rows, slot = self._rows[order], np.concatenate(slots)[order]
        self._starts = np.flatnonzero(np.diff(slot, prepend=-1))
        self._slots = slot[self._starts]
        self._of = slot // self._width
        good = [np.flatnonzero(each.grades > 0) for each in given]
        sizes = [len(each) for each in good]
        self.of = np.repeat(np.arange(self.count), sizes)
        """Which example each answer above 0 is of."""
        self._good = self.of * self._width + np.concatenate(good)
        self._grades = np.concatenate(
            [each.grades[at] for each, at in zip(given, good, strict=True)]
        )
        self._ideal = np.array([each.ideal for each in given])
        self.places = np.array([place for each in given for place in each.places], np.int64)
        self.chances = np.array([chance for each in given for chance in each.chances])
        self.groups = grouped([each.keys for each in given], [each.vector for each in given])
        """Which question each example is of, from 0: shape (count,)."""
        names = np.unique([each.keys[0] for each in given], return_inverse=True)[1]
        self.shares: Floats = 1 / np.bincount(names)[names]
        """What each example counts, so that a question counts once however often it was asked."""
        self._known: dict[Weights, NDArray[np.float32]] = {}

    @cached_property
    def questions(self) -> int:
        """How many there are."""
        return int(self.groups.max()) + 1

    def moved_by(self, column: int) -> float:
        """The share of examples whose candidates differ in this number of their bases."""
        values, begins = self._rows[:, column], np.flatnonzero(np.diff(self._of, prepend=-1))
        spread = np.maximum.reduceat(values, begins) - np.minimum.reduceat(values, begins)
        return float((spread > 0).mean())

    def gains(self, weights: Weights) -> Floats:
        """1 / log2(1 + rank) of each answer above 0 under these weights, 0 below rank 10.

        An answer stands where its best passage does. Ties stand at the last of their ranks, so that
        weights that tell nothing apart gain nothing by it.
        """
        scores = np.full(self.count * self._width, -np.inf)
        scores[self._slots] = np.maximum.reduceat(self._rows @ weights.column, self._starts)
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
    """A number, from 0, for each example: the same for those that share a key or are ALIKE.

    Vectors are looked at once for each first key, ROWS_TOGETHER against all: 20,000 questions take
    some seconds, and memory for one such block.
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
    found: Integers = np.unique(roots, return_inverse=True)[1].astype(np.int64)
    return found


def _join(
    names: Sequence[str], rows: Vector, root: Callable[[str], str], parent: dict[str, str]
) -> None:
    """Give those that are ALIKE one root."""
    for start in range(0, len(names), ROWS_TOGETHER):
        near = rows[start : start + ROWS_TOGETHER] @ rows[start:].T >= ALIKE
        for n, others in enumerate(near):
            mine = root(names[start + n])
            for other in np.flatnonzero(others).tolist():
                if (theirs := root(names[start + other])) != mine:
                    parent[theirs] = mine
