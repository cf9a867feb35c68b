"""Maximal marginal relevance: new things first, the best first of all."""

import time

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from callslip.retrieval.ranking.mmr import diversify

EAST, NORTH = [1.0, 0.0], [0.0, 1.0]


def rows(*vectors: list[float]) -> npt.NDArray[np.float32]:
    return np.array(vectors, np.float32)


def by_definition(
    scores: list[float], vectors: npt.NDArray[np.float32], relevance: float, count: int
) -> list[int]:
    """The formula of the paper, word for word."""
    low, high = min(scores), max(scores)
    points = [(s - low) / ((high - low) or 1) for s in scores]
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    placed: list[int] = [points.index(max(points))]
    while len(placed) < min(count, len(scores)):
        left = [i for i in range(len(scores)) if i not in placed]
        gain = {
            i: relevance * points[i]
            - (1 - relevance) * max(float(unit[i] @ unit[j]) for j in placed)
            for i in left
        }
        placed.append(max(left, key=gain.__getitem__))
    return placed


def test_the_same_said_twice_gives_way_to_something_new() -> None:
    assert diversify([1.0, 0.9, 0.5], rows(EAST, EAST, NORTH), 0.5, 3) == [0, 2, 1]


def test_at_1_the_order_is_that_of_the_scores_and_no_vector_is_needed() -> None:
    assert diversify([0.9, 0.9, 0.5, 0.7], np.empty((0, 0), np.float32), 1, 3) == [0, 1, 3]


def test_the_best_is_first_whatever_the_weight() -> None:
    for relevance in (0.1, 0.5, 0.9):
        assert diversify([0.2, 0.8, 0.4], rows(EAST, EAST, NORTH), relevance, 3)[0] == 1


def test_of_equals_the_first_goes_first() -> None:
    assert diversify([0.5] * 4, rows(EAST, EAST, NORTH, NORTH), 0.5, 4) == [0, 2, 1, 3]


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_it_gives_as_many_as_there_are_and_no_more(count: int) -> None:
    assert len(diversify([0.2, 0.1], rows(EAST, NORTH), 0.4, count)) == min(count, 2)
    assert diversify([], np.empty((0, 2), np.float32), 0.4, count) == []


def test_a_vector_of_zeros_is_like_nothing() -> None:
    assert diversify([1.0, 0.9, 0.8], rows(EAST, EAST, [0.0, 0.0]), 0.5, 3) == [0, 2, 1]


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=12, unique=True),
    st.sampled_from([0.0, 0.2, 0.4, 0.8, 1.0]),
    st.integers(1, 12),
    st.integers(0, 1000),
)
def test_it_is_what_the_formula_says(
    scores: list[float], relevance: float, count: int, seed: int
) -> None:
    vectors = np.random.default_rng(seed).normal(size=(len(scores), 5)).astype(np.float32)
    found = diversify(scores, vectors, relevance, count)
    assert found == by_definition(scores, vectors, relevance, count)


def test_hundreds_of_candidates_take_milliseconds() -> None:
    vectors = np.random.default_rng(0).normal(size=(300, 384)).astype(np.float32)
    scores = np.linspace(1, 0, 300).tolist()
    start = time.perf_counter()
    assert len(diversify(scores, vectors, 0.5, 40)) == 40
    assert time.perf_counter() - start < 0.5
