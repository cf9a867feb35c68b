"""Maximal marginal relevance: selects diverse hits (Carbonell & Goldstein 1998)."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


def diversify(
    scores: Sequence[float], vectors: npt.NDArray[np.float32], relevance: float, count: int
) -> list[int]:
    """Return the positions of the `count` candidates to show, or of all if there are fewer.

    `vectors` has the shape (len(scores), dimension). Each rank goes to the candidate that maximizes

        relevance · score − (1 − relevance) · (greatest cosine to those already placed)

    with the scores scaled to 0 to 1 (min-max), so that λ (`rerank.mmr_lambda`) does not depend on
    their unit. The best score is always placed first; of equal candidates the first one wins. With
    λ = 1 the order is that of the scores, and the vectors are not used. The function compares
    count · len(scores) pairs of vectors.
    """
    count = min(count, len(scores))
    points = np.asarray(scores, np.float64)
    if relevance >= 1 or count < 2:
        best: list[int] = np.argsort(-points, kind="stable")[:count].tolist()
        return best
    points = points - points.min()
    points /= points.max() or 1.0
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = np.asarray(vectors, np.float32) / np.where(lengths > 0, lengths, 1)
    nearest = np.full(len(points), -np.inf)
    placed = [int(points.argmax())]
    while len(placed) < count:
        nearest = np.maximum(nearest, unit @ unit[placed[-1]])
        gains = relevance * points - (1 - relevance) * nearest
        gains[placed] = -np.inf
        placed.append(int(gains.argmax()))
    return placed
