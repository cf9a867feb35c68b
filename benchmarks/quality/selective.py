"""Measures of answers that may be refused: the risk–coverage curve, its area, and calibration.

A question is answered if its confidence reaches a threshold. Coverage is the share of all questions
that are answered; risk is the share of the answered ones whose answer is wrong (Geifman and
El-Yaniv 2017, Selective classification for deep neural networks).
"""

from collections.abc import Sequence
from itertools import groupby
from statistics import fmean
from typing import NamedTuple

import numpy as np

BINS = 10


class Point(NamedTuple):
    """A point of the curve: coverage and risk at a threshold."""

    threshold: float
    coverage: float
    risk: float


def curve(confidences: Sequence[float], right: Sequence[bool]) -> list[Point]:
    """Return a point for each different confidence as the threshold, the highest first.

    `right` says of each question whether its answer is right. No threshold separates questions of
    equal confidence, so they share a point. Raises ValueError if the lengths differ.
    """
    order = sorted(zip(confidences, right, strict=True), key=lambda pair: -pair[0])
    points, answered, wrong = [], 0, 0
    for threshold, group in groupby(order, key=lambda pair: pair[0]):
        flags = [is_right for _, is_right in group]
        answered, wrong = answered + len(flags), wrong + flags.count(False)
        points.append(Point(threshold, answered / len(order), wrong / answered))
    return points


def area(points: Sequence[Point]) -> float:
    """Return the area under a curve (AURC), in [0, 1]: the less the better.

    The area is the mean, over all questions, of the risk at a threshold of the question's own
    confidence (Geifman, Uziel and El-Yaniv 2019, Bias-reduced uncertainty estimation for deep
    neural classifiers).
    """
    before = [0.0, *(point.coverage for point in points)]
    return sum(p.risk * (p.coverage - b) for p, b in zip(points, before, strict=False))


def excess_area(confidences: Sequence[float], right: Sequence[bool]) -> float:
    """Return the area above the least one possible (E-AURC, Geifman, Uziel and El-Yaniv 2019).

    The least area is that of the same answers if every right one had a higher confidence than every
    wrong one. Raises ValueError as `curve` does.
    """
    best = curve(range(len(right), 0, -1), sorted(right, reverse=True))
    return area(curve(confidences, right)) - area(best)


def coverage_at(points: Sequence[Point], risk: float) -> float:
    """Return the greatest coverage of a point whose risk is at most `risk`; 0 without one."""
    return max((point.coverage for point in points if point.risk <= risk), default=0.0)


def risk_at(points: Sequence[Point], coverage: float) -> float:
    """Return the risk at the highest threshold whose coverage is at least `coverage`."""
    return next(point.risk for point in points if point.coverage >= coverage)


def calibration_error(confidences: Sequence[float], right: Sequence[bool]) -> float:
    """Return the expected calibration error, in BINS bins of equal width.

    It is the mean distance of a bin's mean confidence from its share of right answers, each bin
    weighted by its number of questions (Naeini, Cooper and Hauskrecht 2015, Obtaining well
    calibrated probabilities using Bayesian binning). A bin contains its upper bound, the first one
    0 as well (Guo et al. 2017, On calibration of modern neural networks). Raises ValueError without
    a question or if the lengths differ.
    """
    bounds = np.linspace(0, 1, BINS + 1)[1:-1]
    bins: dict[int, list[tuple[float, bool]]] = {}
    for confidence, is_right in zip(confidences, right, strict=True):
        number = int(np.digitize(confidence, bounds, right=True))
        bins.setdefault(number, []).append((confidence, is_right))
    if not bins:
        raise ValueError("no question to compute a calibration error from")
    return sum(
        len(each) / len(right) * abs(fmean(c for c, _ in each) - fmean(flag for _, flag in each))
        for each in bins.values()
    )
