"""Cells of an inverted file: many vectors in groups, of which a search reads the nearest ones.

Sivic and Zisserman, "Video Google: A Text Retrieval Approach to Object Matching in Videos",
ICCV 2003.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from callslip.stores.metrics import Metric
from callslip.stores.records import Vector

MANY = 50_000
"""From this number of vectors a fit makes cells; fewer are compared one by one."""

PROBES = 64
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
        unit = _directions(np.asarray(query, np.float32)[np.newaxis])
        for cell in np.argsort(-_closeness(unit, self.centroids)[0], kind="stable").tolist():
            yield slice(int(self.starts[cell]), int(self.starts[cell + 1]))


def grouped(rows: Rows, lengths: Floats) -> tuple[Cells, Slots]:
    """Make cells with k-means over a sample; return them and the order of the rows by cell."""
    from sklearn.cluster import MiniBatchKMeans  # only a refit needs it

    number = int(_CELLS_PER_ROOT * len(rows) ** 0.5)
    drawn = np.random.default_rng(0).choice(
        len(rows), min(len(rows), number * _SAMPLE_PER_CELL), replace=False
    )
    means = MiniBatchKMeans(
        number,
        init="random",
        n_init=1,
        max_iter=_PASSES,
        batch_size=_ROWS_PER_STEP,
        compute_labels=False,
        random_state=0,
    ).fit(_directions(rows[np.sort(drawn)]))
    centroids = np.asarray(means.cluster_centers_, np.float32)
    labels = np.empty(len(rows), np.int32)
    for at in range(0, len(rows), _ROWS_PER_STEP):
        some = _directions(rows[at : at + _ROWS_PER_STEP])
        labels[at : at + _ROWS_PER_STEP] = _closeness(some, centroids).argmax(axis=1)
    sizes = np.bincount(labels, minlength=number)
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    longest = float(lengths.max())
    even = longest - float(lengths.min()) <= _EVEN * longest
    return Cells(centroids, starts, even), np.argsort(labels, kind="stable")


def _directions(rows: Rows) -> Rows:
    """Vectors of length 1; a vector of length 0 stays."""
    wide = rows.astype(np.float64)
    long = np.linalg.norm(wide, axis=1, keepdims=True)
    return np.asarray(wide / np.where(long > 0, long, 1), np.float32)


def _closeness(rows: Rows, centroids: Rows) -> Rows:
    """Greater where the Euclidean distance of a row and a centroid is less, shape (rows, k)."""
    return np.asarray(rows @ centroids.T - np.square(centroids).sum(axis=1) / 2, np.float32)
