"""Off-policy evaluation: what other weights would have done, less the bias of what was shown where.

Only hits that were shown are judged, and the first are looked at more than the last. So a hit that
helped at place k counts with the weight

    ρ = min(CLIP, 1 / (P(shown there) · k^-η))

where k^-η is the chance that it was looked at (Joachims, Swaminathan and Schnabel 2017). P is 1 but
for a chunk that exploration drew, whose probability is recorded. The estimate is the
self-normalized one of Swaminathan and Joachims (2015), clipped:

    Σ ρ · (g(rank proposed) − g(rank now)) / Σ ρ

with g(rank) = 1 / log2(1 + rank) down to rank 10 and 0 below. η cannot be known without
experiments, so the estimate is made for each of ETAS, and the worst counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from retrieval.resampling import Estimate, Floats, Integers, estimate

ETAS = (0.0, 0.5, 1.0)
"""0: all hits are looked at, which the plain gain assumes; 1: the tenth is a tenth as often."""

CLIP = 20.0

LEAST = -0.005
"""A proposal whose interval ends below may be worse."""


@dataclass(frozen=True)
class Shown:
    """Hits that helped, as they were shown: places from 1, the chance to stand there, groups.

    All of the shape (hits,). `shares` are what each hit counts besides, so that a question that
    was asked often counts once.
    """

    places: Integers
    chances: Floats
    shares: Floats
    groups: Integers


@dataclass(frozen=True)
class OffPolicy:
    """The worst estimate, and the η that it is made for."""

    eta: float
    change: Estimate

    @property
    def holds(self) -> bool:
        """Whether a proposal may be worse."""
        return self.change.low < LEAST


def weights(shown: Shown, eta: float) -> Floats:
    """ρ of each hit, at most CLIP."""
    looked_at = shown.places.astype(np.float64) ** -eta
    return np.minimum(CLIP, 1 / (shown.chances * looked_at))


def worst(shown: Shown, changes: Floats, etas: Sequence[float] = ETAS) -> OffPolicy:
    """The estimate with the lowest lower end; `changes` are g(proposed) − g(now) of each hit."""
    found = (
        OffPolicy(eta, estimate(changes, shown.shares * weights(shown, eta), shown.groups))
        for eta in etas
    )
    return min(found, key=lambda each: each.change.low)
