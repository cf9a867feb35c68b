"""The ratio of two commits' figures with its confidence interval, and what it says."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

LIMIT = 1.15
"""A loss is a ratio above this: 15 % more time, processor time or memory."""

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Ratio:
    """New ÷ old of one figure, of which less is better, with its confidence interval."""

    ratio: float
    low: float
    high: float

    @property
    def is_loss(self) -> bool:
        """Whether the whole interval lies above LIMIT."""
        return self.low > LIMIT

    @property
    def verdict(self) -> str:
        """What the interval says, in words."""
        if self.is_loss:
            return "LOSS"
        if self.high <= LIMIT:
            return "faster" if self.high < 1 else "no loss above 15 %"
        return "not certain: more rounds"


def ratio(old: Sequence[float], new: Sequence[float]) -> Ratio:
    """Compare the figures of rounds, in pairs: `old[i]` and `new[i]` were measured side by side.

    The ratio is the geometric mean of the rounds' ratios; the interval is Student's for the mean of
    their logarithms. Raises ValueError for fewer than two rounds, and for a figure that is not
    positive.
    """
    if not all(figure > 0 for figure in (*old, *new)):
        raise ValueError(f"figures must be positive, not {[*old, *new]}")
    logs = np.log(np.array(new) / np.array(old))
    if len(logs) < 2:
        raise ValueError("an interval needs two rounds or more")
    mean, error = float(logs.mean()), float(logs.std(ddof=1)) / math.sqrt(len(logs))
    reach = float(stats.t.ppf((1 + CONFIDENCE) / 2, len(logs) - 1)) * error
    return Ratio(math.exp(mean), math.exp(mean - reach), math.exp(mean + reach))
