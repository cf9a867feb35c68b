"""Distances between vectors, defined once for every store."""

import numpy as np
import numpy.typing as npt

from callslip.vocabulary import METRICS as METRICS
from callslip.vocabulary import Metric as Metric


def scores(
    metric: Metric, query: npt.NDArray[np.float32], vectors: npt.NDArray[np.float32]
) -> npt.NDArray[np.float64]:
    """Score vectors, shape (n, d), against a query, shape (d,): higher is nearer, shape (n,).

    Equal vectors have equal scores at any position. A matrix product does not guarantee this: it
    sums in another order near its end. `distance` turns a score into the metric's distance.
    """
    q, rows = query.astype(np.float64), vectors.astype(np.float64)
    match metric:
        case "cosine":
            lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(q)
            return np.asarray(
                np.einsum("nd,d->n", rows, q) / np.where(lengths > 0, lengths, np.inf)
            )
        case "dot":
            return np.asarray(np.einsum("nd,d->n", rows, q))
        case "l2-squared":
            return -np.asarray(np.square(rows - q).sum(axis=1))
        case "hamming":
            # In 32 bits, as stored: in 64 bits, a number differs from its rounded value.
            unlike = vectors != query.astype(np.float32)
            return -np.asarray(unlike.sum(axis=1), np.float64)
        case "manhattan":
            return -np.asarray(np.abs(rows - q).sum(axis=1))


def distance(metric: Metric, score: float) -> float:
    """The distance for a score.

    cosine: 1 - cosine similarity, 0 to 2. dot: the negative inner product. l2-squared: the sum of
    squared differences. hamming: the number of components that differ. manhattan: the sum of
    absolute differences.
    """
    return 1.0 - score if metric == "cosine" else -score


def score_of_unit(metric: Metric, cosine: float, query_length: float) -> float:
    """The dot or l2-squared score of a stored vector of length 1, by its cosine."""
    if metric == "dot":
        return query_length * cosine
    return -(query_length**2 + 1.0 - 2.0 * query_length * cosine)
