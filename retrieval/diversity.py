"""Maximal marginal relevance: hits that say something new (Carbonell & Goldstein 1998)."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


def diversify(
    scores: Sequence[float], vectors: npt.NDArray[np.float32], relevance: float, count: int
) -> list[int]:
    """Positions of the `count` candidates to show, or of all when there are fewer.

    `vectors` has the shape (len(scores), dimension). Each place goes to the candidate with the most

        relevance · score − (1 − relevance) · (greatest cosine to those already placed)

    with scores put on 0 to 1, their lowest and highest, so that λ (`rerank.mmr_lambda`) means the
    same whatever the scores' unit. The best is placed first, whatever λ, and the first of equals.
    At 1 the order is that of the scores, and the vectors are not looked at. Takes as many
    comparisons of vectors as count · len(scores).
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
