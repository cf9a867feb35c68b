"""The measures are those of the field."""

from math import log2

import pytest

from evals.measures import measure, rank_documents


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
