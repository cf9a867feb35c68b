"""Nearest vectors: one pass over all, or some cells, in 32 bits, then the best ones in 64 bits."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from callslip.stores.metrics import Metric, scores
from callslip.stores.records import Vector
from callslip.stores.tfidf.cells import PROBES, WANTED, Cells

_ROWS_PER_STEP = 1024
"""This many rows of a few hundred numbers fit into a core's cache."""

_FEW = 10
"""Reading every tenth row takes as long as reading all rows in order."""

_TINY = 1e-30
"""The products of shorter vectors are too small for 32 bits."""

_ROUNDING = float(np.finfo(np.float32).eps) / 2

Rows = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float64]
Slots = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Vectors:
    """Vectors of one name, shape (n, d), their lengths, and the slots of their chunks.

    With `cells` the rows of a cell follow each other.
    """

    slots: Slots
    rows: Rows
    lengths: Floats
    cells: Cells | None = None

    @staticmethod
    def of(slots: Slots, rows: Rows) -> "Vectors":
        """Compute the lengths of the vectors."""
        return Vectors(slots, rows, lengths(rows))

    def between(self, rows: slice) -> "Vectors":
        """The vectors of some rows, without a copy."""
        return Vectors(self.slots[rows], self.rows[rows], self.lengths[rows])


def lengths(rows: Rows) -> Floats:
    """The length of each row, in 64 bits."""
    steps = range(0, len(rows), _ROWS_PER_STEP)
    some = (np.asarray(rows[at : at + _ROWS_PER_STEP], np.float64) for at in steps)
    return np.concatenate([np.empty(0), *(np.linalg.norm(part, axis=1) for part in some)])


@dataclass(frozen=True)
class Part:
    """Some rows of a block's vectors; `offset` is the slot of the block's first chunk."""

    vectors: Vectors
    picks: Slots
    offset: int


def parts_near(
    metric: Metric,
    query: Vector,
    vectors: Vectors,
    limit: int,
    among: npt.NDArray[np.bool_],
    offset: int,
) -> Iterator[Part]:
    """Iterate over parts of a block that contain most of the nearest vectors of slots in `among`.

    Without cells, for a metric that the cells do not support, and if few slots pass, it is one
    part with all vectors.
    """
    cells, wanted = vectors.cells, limit * WANTED
    if cells is None or not cells.support(metric) or np.count_nonzero(among) <= wanted:
        yield Part(vectors, np.flatnonzero(among[vectors.slots]), offset)
        return
    passed = 0
    for number, rows in enumerate(cells.near(query)):
        if number >= PROBES and passed >= wanted:
            return
        some = vectors.between(rows)
        picks = np.flatnonzero(among[some.slots])
        passed += len(picks)
        yield Part(some, picks, offset)


def nearest(
    metric: Metric, query: Vector, parts: Sequence[Part], limit: int
) -> tuple[Slots, Floats]:
    """The slots and scores of all vectors that may be among the best, in undefined order."""
    parts = [part for part in parts if len(part.picks)]
    if not parts:
        return np.empty(0, np.int64), np.empty(0)
    with np.errstate(over="ignore", invalid="ignore"):
        rough = [_rough(metric, query, part.vectors, part.picks) for part in parts]
        least = _least(metric, query, parts, np.concatenate(rough), limit)
    candidates, exact = [], []
    for part, some in zip(parts, rough, strict=True):
        chosen = part.picks[~(some < least)]  # includes NaN
        for at in range(0, len(chosen), _ROWS_PER_STEP):
            step = chosen[at : at + _ROWS_PER_STEP]
            candidates.append(part.vectors.slots[step] + part.offset)
            exact.append(scores(metric, query, part.vectors.rows[step]))
    return np.concatenate(candidates), np.concatenate(exact)


def _rough(metric: Metric, query: Vector, vectors: Vectors, picks: Slots) -> Floats:
    """Scores in 32 bits; NaN if a vector is too short for 32 bits."""
    few = len(picks) * _FEW < len(vectors.rows)
    rows = vectors.rows[picks] if few else vectors.rows
    if metric in ("hamming", "manhattan"):
        steps = (rows[at : at + _ROWS_PER_STEP] for at in range(0, len(rows), _ROWS_PER_STEP))
        if metric == "hamming":
            apart = [np.count_nonzero(some != query, axis=1) for some in steps]
        else:
            apart = [np.abs(some - query).sum(axis=1) for some in steps]
        candidates = -np.concatenate(apart).astype(np.float64)
        return candidates if few else candidates[picks]
    query_long = _length(query)
    unit = (query.astype(np.float64) / (query_long or 1.0)).astype(np.float32)
    products: Floats = np.vecdot(rows, unit).astype(np.float64)  # a third of the time of `@`
    products = products if few else products[picks]
    long = vectors.lengths[picks]
    products[(long > 0) & (long < _TINY)] = np.nan
    match metric:
        case "cosine":
            return products / np.where(long > 0, long, np.inf)
        case "dot":
            return products * query_long
        case _:
            return 2 * products * query_long - long**2 - query_long**2


def _least(
    metric: Metric, query: Vector, parts: Sequence[Part], rough: Floats, limit: int
) -> float:
    """The rough score below which a vector cannot be among the best."""
    if len(rough) <= limit or not np.isfinite(rough).all():
        return -np.inf
    last = float(np.partition(rough, -limit)[-limit])
    longest = max(float(part.vectors.lengths.max()) for part in parts)
    query_long = _length(query)
    # A bound of the rounding errors of d additions: Higham, Accuracy and Stability, section 3.1.
    scale = {
        "cosine": 1.0,
        "dot": query_long * longest,
        "l2-squared": (query_long + longest) ** 2,
        "manhattan": abs(last),
        "hamming": 0.0,
    }[metric]
    return last - 4 * (len(query) + 4) * _ROUNDING * scale


def _length(query: Vector) -> float:
    return float(np.linalg.norm(query.astype(np.float64)))
