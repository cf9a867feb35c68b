"""Risk, coverage, areas and calibration, against figures computed by hand."""

import pytest

from benchmarks.quality.selective import (
    Point,
    area,
    calibration_error,
    coverage_at,
    curve,
    excess_area,
    risk_at,
)

CONFIDENCES = (0.4, 0.9, 0.8, 0.6)
RIGHT = (True, True, False, True)
POINTS = [
    Point(0.9, 0.25, 0.0),
    Point(0.8, 0.5, 0.5),
    Point(0.6, 0.75, 1 / 3),
    Point(0.4, 1.0, 0.25),
]


def test_the_curve_follows_the_confidence() -> None:
    assert curve(CONFIDENCES, RIGHT) == POINTS


@pytest.mark.parametrize("right", [(True, False, True), (False, True, True)])
def test_questions_of_equal_confidence_share_a_point(right: tuple[bool, ...]) -> None:
    points = curve((0.9, 0.9, 0.5), right)
    assert points == [Point(0.9, 2 / 3, 0.5), Point(0.5, 1.0, 1 / 3)]
    assert area(points) == pytest.approx((0.5 + 0.5 + 1 / 3) / 3)


def test_the_area_is_the_mean_risk_over_the_questions() -> None:
    assert area(POINTS) == pytest.approx((0 + 1 / 2 + 1 / 3 + 1 / 4) / 4)


def test_the_excess_area_is_what_a_better_order_would_save() -> None:
    least = (0 + 0 + 0 + 1 / 4) / 4
    assert excess_area(CONFIDENCES, RIGHT) == pytest.approx(area(POINTS) - least)


@pytest.mark.parametrize("right", [(True, True, True), (False, False, False), (True, True, False)])
def test_the_best_order_has_no_excess(right: tuple[bool, ...]) -> None:
    assert excess_area((0.9, 0.8, 0.7), right) == pytest.approx(0)


def test_one_confidence_for_all_has_the_risk_of_all_as_area() -> None:
    confidences, right = (0.5,) * 4, RIGHT
    assert area(curve(confidences, right)) == 0.25
    assert excess_area(confidences, right) == pytest.approx(0.25 - 1 / 16)


def test_a_lower_threshold_may_have_a_lower_risk() -> None:
    assert coverage_at(POINTS, 0.25) == 1.0
    assert coverage_at(POINTS, 0.2) == 0.25
    assert coverage_at(POINTS[1:], 0.1) == 0.0


def test_the_risk_at_a_coverage_is_that_of_the_highest_threshold_that_reaches_it() -> None:
    assert risk_at(POINTS, 0.5) == 0.5
    assert risk_at(POINTS, 0.51) == 1 / 3
    assert risk_at(POINTS, 1.0) == 0.25


def test_the_calibration_error_is_a_weighted_mean_over_bins() -> None:
    confidences = (0.95, 0.95, 0.95, 0.35)
    right = (True, True, False, False)
    assert calibration_error(confidences, right) == pytest.approx(
        3 / 4 * (0.95 - 2 / 3) + 1 / 4 * 0.35
    )


@pytest.mark.parametrize(
    ("together", "apart"), [((0.25, 0.3), (0.3, 0.35)), ((0.0, 0.1), (0.1, 0.15))]
)
def test_a_bin_contains_its_upper_bound(
    together: tuple[float, float], apart: tuple[float, float]
) -> None:
    right = (True, False)
    assert calibration_error(together, right) == pytest.approx(abs(sum(together) / 2 - 0.5))
    assert calibration_error(apart, right) == pytest.approx((1 - apart[0] + apart[1]) / 2)


def test_what_has_no_measure_is_refused() -> None:
    with pytest.raises(ValueError, match="no question"):
        calibration_error((), ())
    with pytest.raises(ValueError, match="zip"):
        curve((0.5,), ())
