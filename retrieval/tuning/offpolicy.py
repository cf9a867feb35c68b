"""Off-policy evaluation: estimates other weights from recorded feedback, corrected for bias.

Feedback exists only for hits that were shown, and users look at the first hits more than at the
last. So a hit that helped at rank k counts with the weight

    ρ = min(CLIP, 1 / (P(shown there) · k^-η))

Here k^-η is the probability that a user looked at the hit (Joachims, Swaminathan and Schnabel
2017). P is 1, except for a chunk that exploration drew, whose probability is recorded. The estimate
is the self-normalized estimator of Swaminathan and Joachims (2015), clipped:

    Σ ρ · (g(rank proposed) − g(rank now)) / Σ ρ

with g(rank) = 1 / log2(1 + rank) down to rank 10 and 0 below. η cannot be known without
experiments, so the estimate is made for each of ETAS, and the worst estimate counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from callslip.retrieval.tuning.bootstrap import Estimate, Floats, Integers, estimate

ETAS = (0.0, 0.5, 1.0)
"""0: users look at all hits, as the plain gain assumes; 1: the tenth hit gets a tenth of the
looks."""

CLIP = 20.0

LEAST = -0.005
"""A proposal whose interval ends below this value may be worse."""


@dataclass(frozen=True)
class Shown:
    """Hits that helped, as they were shown: ranks from 1, probabilities of these ranks, groups.

    All arrays have the shape (hits,). `shares` are additional weights of the hits, so that a
    question of many searches counts once.
    """

    positions: Integers
    chances: Floats
    shares: Floats
    groups: Integers


@dataclass(frozen=True)
class OffPolicy:
    """The worst estimate, and its η."""

    eta: float
    change: Estimate

    @property
    def holds(self) -> bool:
        """Whether the estimate does not exclude that the proposal is worse."""
        return self.change.low < LEAST


def weights(shown: Shown, eta: float) -> Floats:
    """The weight ρ of each hit, at most CLIP."""
    looked_at = shown.positions.astype(np.float64) ** -eta
    return np.minimum(CLIP, 1 / (shown.chances * looked_at))


def worst(shown: Shown, changes: Floats, etas: Sequence[float] = ETAS) -> OffPolicy:
    """The estimate whose lower bound is lowest; `changes` are g(proposed) − g(now) of each hit."""
    estimates = (
        OffPolicy(eta, estimate(changes, shown.shares * weights(shown, eta), shown.groups))
        for eta in etas
    )
    return min(estimates, key=lambda each: each.change.low)
