"""Estimates a mean over questions with a bootstrap confidence interval."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

RESAMPLES, SEED = 2000, 20261122

TOGETHER = 1_000_000
"""The number of groups that are drawn at a time, which bounds the memory."""


@dataclass(frozen=True)
class Estimate:
    """A mean with its 95 % confidence interval."""

    mean: float
    low: float
    high: float


def estimate(values: Floats, weights: Floats, groups: Integers) -> Estimate:
    """The weighted mean with its percentile bootstrap interval, from a fixed seed.

    Values of one group are drawn together, because they are not independent (the cluster bootstrap,
    Field and Welsh 2007). To compare two rankings, pass the difference of each question (paired).
    All arrays have the shape (values,); groups are numbered from 0. Raises ValueError if `values`
    is empty.
    """
    if not len(values):
        raise ValueError("no value to estimate a mean from")
    sums = np.bincount(groups, weights * values)
    counts = np.bincount(groups, weights)
    sums, counts = sums[counts > 0], counts[counts > 0]
    chance, size = np.random.default_rng(SEED), len(sums)
    at_a_time = max(1, TOGETHER // size)
    means: list[Floats] = []
    for start in range(0, RESAMPLES, at_a_time):
        drawn = chance.integers(size, size=(min(at_a_time, RESAMPLES - start), size))
        means.append(sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1))
    low, high = np.percentile(np.concatenate(means), (2.5, 97.5))
    return Estimate(float(sums.sum() / counts.sum()), float(low), float(high))
