"""Candidates in a new order: the blend of two scores, and what happens without the second."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callslip.config.sections.ranking import RerankSettings
from callslip.errors import CallslipError, RerankerDown, SettingsError
from callslip.retrieval.ranking.rerank import blend, rerank

SCORES = st.floats(-1e6, 1e6, allow_nan=False)


class Reader:
    """A reranker that says what it is told to."""

    name = "told/by-test"

    def __init__(self, *scores: float, error: CallslipError | None = None) -> None:
        self.reports, self.error = list(scores), error
        self.requests: list[tuple[str, list[str], float]] = []

    def scores(self, query: str, passages: Sequence[str], deadline_seconds: float) -> list[float]:
        self.requests.append((query, list(passages), deadline_seconds))
        if self.error:
            raise self.error
        return self.reports


def settings(**values: float) -> RerankSettings:
    return RerankSettings.model_validate({"weight": 0.5, **values})


def test_what_the_reranker_prefers_rises() -> None:
    reader = Reader(0.1, 0.2, 0.9)
    made = rerank(reader, "q", ["a", "b", "c"], [0.9, 0.8, 0.7], settings(weight=0.7))
    assert made.order == (2, 0, 1)
    assert made.read == (0.1, 0.2, 0.9)
    assert made.left_out is None
    assert reader.requests == [("q", ["a", "b", "c"], 2.0)]


def test_only_the_first_are_read_and_the_rest_keeps_its_place_and_score() -> None:
    reader = Reader(0.0, 1.0)
    fused = [0.9, 0.8, 0.7, 0.6]
    made = rerank(reader, "q", ["a", "b", "c", "d"], fused, settings(top=2, weight=1))
    assert made.order == (1, 0, 2, 3)
    assert made.scores == (0.8, 0.9, 0.7, 0.6)
    assert reader.requests[0][1] == ["a", "b"]


def test_texts_are_needed_of_the_first_alone() -> None:
    made = rerank(Reader(0.0, 1.0), "q", ["a", "b"], [0.9, 0.8, 0.7], settings(weight=1))
    assert made.order == (1, 0, 2)


@pytest.mark.parametrize(
    ("reader", "why"),
    [
        (None, "there is no reranker"),
        (Reader(error=RerankerDown("it took too long")), "it took too long"),
        (Reader(error=SettingsError("its file is another")), "its file is another"),
    ],
)
def test_without_a_reranker_the_fused_order_stands(reader: Reader | None, why: str) -> None:
    fused = [0.9, 0.8, 0.8, 0.1]
    made = rerank(reader, "q", ["a", "b", "c", "d"], fused, settings())
    assert made.order == (0, 1, 2, 3)
    assert made.scores == tuple(fused)
    assert made.read == ()
    assert made.left_out == why


def test_a_mistake_of_ours_is_not_taken_for_a_reranker_that_is_down() -> None:
    with pytest.raises(ValueError, match="zip"):
        rerank(Reader(0.5), "q", ["a", "b"], [0.9, 0.8], settings())


def test_nothing_found_asks_nobody() -> None:
    reader = Reader()
    assert rerank(reader, "q", [], [], settings()).order == ()
    assert reader.requests == []


def test_of_equal_fused_scores_the_better_read_goes_first() -> None:
    made = rerank(Reader(0.1, 0.3, 0.2), "q", ["a", "b", "c"], [0.5] * 3, settings())
    assert made.order == (1, 2, 0)
    assert made.scores == (0.5, 0.5, 0.5)


def test_one_weight_fits_scores_of_any_scale() -> None:
    fused, read = [0.9, 0.5, 0.4, 0.1], [0.2, 0.9, 0.1, 0.3]
    logits = [20 * score - 7 for score in read]
    assert blend(fused, logits, 0.4) == pytest.approx(blend(fused, read, 0.4))


@given(st.lists(st.tuples(SCORES, SCORES), max_size=30))
def test_weight_0_is_the_fused_order_and_score_to_the_bit(pairs: list[tuple[float, float]]) -> None:
    fused = sorted((f for f, _ in pairs), reverse=True)
    read = [r for _, r in pairs]
    made = rerank(Reader(*read), "q", ["text"] * len(pairs), fused, settings(weight=0))
    assert made.order == tuple(range(len(pairs)))
    assert made.scores == tuple(fused)


@given(
    st.lists(st.tuples(SCORES, SCORES), min_size=1, max_size=30),
    st.floats(0, 1),
    st.integers(1, 40),
)
def test_every_candidate_stays_once_and_scores_descend(
    pairs: list[tuple[float, float]], weight: float, top: int
) -> None:
    fused = sorted((f for f, _ in pairs), reverse=True)
    read = [r for _, r in pairs][:top]
    made = rerank(
        Reader(*read), "q", ["text"] * len(pairs), fused, settings(weight=weight, top=top)
    )
    assert sorted(made.order) == list(range(len(pairs)))
    scores = [made.scores[i] for i in made.order]
    slack = 1e-9 * max(1.0, *map(abs, fused))
    assert all(a >= b - slack for a, b in pairwise(scores))
    assert min(fused) - slack <= min(scores)
    assert max(scores) <= max(fused) + slack
