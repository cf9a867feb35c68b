"""The measures are those of the field."""

from math import log2

import numpy as np
import pytest

from callslip.evals.measures import (
    MEASURES,
    Estimate,
    estimate,
    measure,
    measure_each,
    rank_documents,
)


def test_a_document_stands_where_its_best_passage_stands() -> None:
    assert rank_documents(["b", "a", "b", "c"]) == {"b": 1, "a": 1 / 2, "c": 1 / 4}


def test_measures_follow_their_formulas() -> None:
    run = {"q": rank_documents(["x", "a", "y", "b"])}
    found = measure({"q": {"a": 1, "b": 1, "never": 1}}, run)
    ideal = 1 + 1 / log2(3) + 1 / log2(4)
    assert found["ndcg@10"] == pytest.approx((1 / log2(3) + 1 / log2(5)) / ideal, abs=1e-4)
    assert found["recall@10"] == pytest.approx(2 / 3, abs=1e-4)
    assert found["mrr@10"] == 0.5


def test_what_comes_after_rank_10_counts_for_recall_at_100_only() -> None:
    ranked = [f"x{i}" for i in range(10)] + ["a"]
    found = measure({"q": {"a": 1}}, {"q": rank_documents(ranked)})
    assert found == {"ndcg@10": 0, "recall@10": 0, "recall@100": 1, "mrr@10": 0}


def test_a_query_that_found_nothing_counts_zero() -> None:
    qrels = {"q1": {"a": 1}, "q2": {"a": 1}}
    assert measure(qrels, {"q1": {"a": 1.0}, "q2": {}})["ndcg@10"] == 0.5
    assert measure(qrels, {"q1": {"a": 1.0}})["ndcg@10"] == 0.5


def test_negative_judgements_are_not_relevant() -> None:
    found = measure({"q": {"a": 1, "old": -1}}, {"q": rank_documents(["old", "a"])})
    assert found["mrr@10"] == 0.5
    assert found["recall@10"] == 1


def test_each_query_is_measured_by_itself() -> None:
    qrels = {"q1": {"a": 1}, "q2": {"a": 1}, "q3": {"a": 1}}
    run = {"q1": rank_documents(["a"]), "q2": rank_documents(["x", "a"])}
    found = measure_each(qrels, run)
    assert found["success@1"] == {"q1": 1, "q2": 0, "q3": 0}
    assert found["mrr@10"] == {"q1": 1, "q2": 0.5, "q3": 0}
    means = {name: sum(values.values()) / 3 for name, values in found.items()}
    assert measure(qrels, run) == pytest.approx({n: means[n] for n in MEASURES}, abs=1e-4)


def test_an_interval_is_the_same_each_time_and_holds_the_mean() -> None:
    values = [0.0, 1.0] * 50
    found = estimate(values)
    assert found == estimate(values)
    assert found.mean == 0.5
    assert (found.low, found.high) == pytest.approx((0.4, 0.6), abs=0.02)  # ± 1.96 · .5 / √100


def test_an_interval_narrows_with_the_square_root_of_the_queries() -> None:
    few, many = (estimate([0.0, 1.0] * n) for n in (50, 800))
    assert (few.high - few.low) / (many.high - many.low) == pytest.approx(4, rel=0.15)


def test_the_interval_of_equal_values_is_a_point() -> None:
    assert estimate([0.25] * 3) == Estimate(0.25, 0.25, 0.25)


def test_a_mean_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="no value"):
        estimate([])


def test_95_of_100_intervals_hold_the_true_mean() -> None:
    draws = np.random.default_rng(1).beta(4, 1, (200, 150))
    held = [found.low <= 0.8 <= found.high for found in (estimate(list(d)) for d in draws)]
    assert 0.9 <= sum(held) / len(held) <= 0.99
