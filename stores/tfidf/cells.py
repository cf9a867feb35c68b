"""Cells of an inverted file: many vectors in groups, of which a search reads the nearest ones.

Sivic and Zisserman, "Video Google: A Text Retrieval Approach to Object Matching in Videos",
ICCV 2003.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from callslip.stores.metrics import Metric
from callslip.stores.records import Vector

MANY = 50_000
"""From this number of vectors a fit makes cells; fewer are compared one by one."""

PROBES = 48
"""A search reads at least so many cells."""

WANTED = 40
"""A search reads cells until so many vectors for each hit have passed its filter."""

_CELLS_PER_ROOT = 2
"""Times the square root of the number of vectors: centroids and read vectors grow alike."""

_SAMPLE_PER_CELL = 64
_PASSES = 5
_ROWS_PER_STEP = 4096

_EVEN = 1e-3
"""Lengths that differ by less than this share count as equal: then all three metrics agree."""

Rows = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float64]
Slots = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Cells:
    """The centroids of directions, shape (k, d), and where each cell's rows start, shape (k + 1).

    `even` is true if all vectors have nearly the same length.
    """

    centroids: Rows
    starts: Slots
    even: bool

    def support(self, metric: Metric) -> bool:
        """Whether the nearest directions are the nearest vectors by this metric."""
        return metric == "cosine" or (self.even and metric in ("dot", "l2-squared"))

    def near(self, query: Vector) -> Iterator[slice]:
        """Iterate over the rows of each cell, the cell with the nearest centroid first."""
        [unit] = _directions(np.asarray(query, np.float32)[np.newaxis])
        for cell in np.argsort(self._halves - self.centroids @ unit, kind="stable").tolist():
            yield slice(int(self.starts[cell]), int(self.starts[cell + 1]))

    @cached_property
    def _halves(self) -> Rows:
        return _half_squares(self.centroids)


def grouped(rows: Rows, lengths: Floats) -> tuple[Cells, Slots]:
    """Make cells with k-means over a sample; return them and the order of the rows by cell."""
    number = int(_CELLS_PER_ROOT * len(rows) ** 0.5)
    drawn = np.random.default_rng(0).choice(
        len(rows), min(len(rows), number * _SAMPLE_PER_CELL), replace=False
    )
    centroids = _means(_directions(rows[np.sort(drawn)]), number)
    halves, labels = _half_squares(centroids), np.empty(len(rows), np.int32)
    for at in range(0, len(rows), _ROWS_PER_STEP):
        some = _directions(rows[at : at + _ROWS_PER_STEP])
        labels[at : at + _ROWS_PER_STEP] = (some @ centroids.T - halves).argmax(axis=1)
    sizes = np.bincount(labels, minlength=number)
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    longest = float(lengths.max())
    even = longest - float(lengths.min()) <= _EVEN * longest
    return Cells(centroids, starts, even), np.argsort(labels, kind="stable")


def _means(sample: Rows, number: int) -> Rows:
    """The centroids of k-means.

    Every pass goes over the whole sample: in scikit-learn's passes over small batches half of
    2,000 centroids stayed alone with their first row.
    """
    from sklearn.cluster import KMeans  # only a refit needs it
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of equal rows
        means = KMeans(number, init="random", n_init=1, max_iter=_PASSES, random_state=0)
        return np.asarray(means.fit(sample).cluster_centers_, np.float32)


def _directions(rows: Rows) -> Rows:
    """Vectors of length 1; a vector of length 0 stays."""
    wide = rows.astype(np.float64)
    long = np.linalg.norm(wide, axis=1, keepdims=True)
    return np.asarray(wide / np.where(long > 0, long, 1), np.float32)


def _half_squares(centroids: Rows) -> Rows:
    """Half of each squared length: a row is nearest where its product less this is greatest."""
    return np.asarray(np.square(centroids).sum(axis=1) / 2, np.float32)
