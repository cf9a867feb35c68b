"""Fitting weights: what is better is found, what is chance is not, and nothing leaks."""

from dataclasses import asdict, replace

import numpy as np
import pytest
from synthetic import NOW, SHOWN, candidates, example, logged

from callslip.errors import GuardHolds, NotBetter, TooFewQuestions
from callslip.retrieval.tuning.bootstrap import estimate
from callslip.retrieval.tuning.examples import (
    Example,
    Examples,
    Ranked,
    Weights,
    discount,
    grouped,
    known_rows,
)
from callslip.retrieval.tuning.fit import FEWEST, FOLDS, GRIDS, divided, tune
from callslip.retrieval.tuning.offpolicy import CLIP, Shown, weights, worst

TRIALS = 60


def test_a_better_weight_is_found_and_may_be_applied() -> None:
    tuned = tune(logged(400, 1, better=0.7), NOW, biased=True)
    tuned.check()
    assert 0.55 <= tuned.proposed.alpha <= 0.8
    assert tuned.gain.low > 0.02
    assert tuned.after - tuned.before == pytest.approx(tuned.gain.mean, abs=1e-6)
    assert set(tuned.changes) == set(tuned.fitted) == set(GRIDS)


@pytest.mark.long
@pytest.mark.parametrize("better", [None, NOW.weights.alpha])
def test_chance_is_hardly_ever_applied(better: float | None) -> None:
    """Where answers are drawn from what was shown, and where the present weights are the best."""
    applied = 0
    for seed in range(TRIALS):
        tuned = tune(logged(60 + seed % 3 * 60, seed, better=better), NOW, biased=False)
        try:
            tuned.check()
            applied += 1
        except NotBetter:
            continue
    assert applied <= 0.05 * TRIALS


def test_too_few_questions_are_refused_with_their_number() -> None:
    for count in (0, FEWEST - 1):
        with pytest.raises(TooFewQuestions, match=rf"^{count} different .* {FEWEST} are needed"):
            tune(logged(count, 1, better=0.7), NOW, biased=True)
    again = [replace(each, keys=("one",)) for each in logged(200, 1, better=0.7)]
    with pytest.raises(TooFewQuestions, match=r"^1 different"):
        tune(again, NOW, biased=True)


LOW = Ranked(Weights(0.3, 0, 0, 0), "calibrated")


def fooled(count: int, eta: float, seed: int) -> list[Example]:
    """An alpha of .4 lifts an answer from place 2 to 1, or drops it from 9 out of sight.

    The second happens twice as often, but what stands at 9 is seldom looked at.
    """
    chance = np.random.default_rng(seed)
    found: list[Example] = []
    for n in range(count):
        scope = 2 if n % 3 == 0 else 9
        rows = np.zeros((40, 6))
        rows[:, 1] = 0.4 - 0.01 * np.arange(40)
        lifted = np.arange(1, 2) if scope == 2 else np.arange(9, 25)
        over = 0 if scope == 2 else 8
        rows[lifted, 0] = (rows[over, 1] - rows[lifted, 1]) / 0.55
        if chance.random() < float(scope) ** -eta:
            found.append(example(f"q{n}", rows, scope, [scope - 1]))
    return found


def test_a_biased_log_fools_the_plain_gain_but_not_the_guard() -> None:
    tuned = tune(fooled(1200, 1.0, 5), LOW, biased=True)
    assert tuned.gain.low > 0  # as far as the log goes, it is better
    truth = Examples(fooled(1200, 0.0, 6))
    change = truth.gains(tuned.proposed) - truth.gains(LOW.weights)
    assert change.mean() < -0.01
    assert tuned.off_policy is not None
    assert tuned.off_policy.eta == 1.0
    with pytest.raises(GuardHolds, match="off-policy"):
        tuned.check()
    replace(tuned, off_policy=None).check()


def test_what_exploration_drew_counts_by_its_probability_up_to_the_clip() -> None:
    shown = Shown(
        positions=np.array([1, 10, 10, 40]),
        chances=np.array([1.0, 1.0, 0.005, 1.0]),
        shares=np.ones(4),
        groups=np.arange(4),
    )
    assert weights(shown, 0.0).tolist() == [1, 1, CLIP, 1]
    assert weights(shown, 1.0).tolist() == pytest.approx([1, 10, CLIP, CLIP])
    found = worst(shown, np.array([0.5, -0.5, 0.0, 0.0]))
    assert found.eta == 1.0
    assert found.change.mean == pytest.approx((0.5 - 5) / (1 + 10 + CLIP + CLIP))


def test_all_of_one_question_lie_in_one_fold() -> None:
    chance = np.random.default_rng(3)
    base = chance.normal(size=(80, 16))
    keys, vectors = [], []
    for n in range(400):
        question = n % 80
        keys.append((f"words {question} {n % 3}", f"answers {question}" if n % 2 else f"own {n}"))
        vectors.append((base[question] + chance.normal(0, 0.01, 16)).astype(np.float32))
    groups = grouped(keys, vectors)
    parts = divided(groups)
    for question in range(80):
        assert len({parts[n] for n in range(question, 400, 80)}) == 1
    assert len(set(groups.tolist())) == 80
    assert max(np.bincount(parts)) - min(np.bincount(parts)) <= 5
    assert len(set(parts.tolist())) == FOLDS


def test_questions_join_over_words_answers_and_likeness_in_turn() -> None:
    east, north = np.array([1.0, 0]), np.array([0, 1.0])
    near, wide = np.array([1.0, 0.1]), np.array([1.0, 0, 0])
    keys = [("a", "x"), ("b",), ("c", "x"), ("d",), ("e",), ("f",)]
    vectors = [near, east, None, north, wide, None]
    found = grouped(keys, [None if v is None else v.astype(np.float32) for v in vectors]).tolist()
    assert found[0] == found[1] == found[2]
    assert len(set(found)) == 4


def test_held_out_gain_comes_from_folds_that_have_not_seen_the_question() -> None:
    """Each question's answer is lifted by a weight of its own: nothing carries over."""
    chance = np.random.default_rng(8)
    given = []
    for n in range(60):
        rows = candidates(chance)
        given += [example(f"q{n}", rows, 3, [int(chance.integers(SHOWN))]) for _ in range(8)]
    tuned = tune(given, NOW, biased=False)
    everything = Examples(given)
    fitted = everything.ndcg(tuned.proposed).mean()
    assert fitted > tuned.before
    assert tuned.after < fitted
    assert tuned.questions == 60
    assert tuned.searches == 480


def test_a_weight_that_is_off_or_moves_nothing_is_not_fitted() -> None:
    given = logged(100, 2, better=0.7)
    for each in given:
        each.rows[:, 3] = 0.5
    off = Ranked(replace(NOW.weights, memory_weight=0.0), "calibrated")
    assert tune(given, off, biased=False).fitted == ("alpha", "proximity")
    other = Ranked(off.weights, "rrf")
    assert "alpha" not in tune(given, other, biased=False).fitted


def test_the_score_of_features_is_the_score_that_was_given() -> None:
    row = [0.8, 0.5, 0.4, 0.3, 0.2, 0.1]
    by_hand = 0.4 * 0.8 + 0.6 * (0.5 + 0.25 * 0.4) + 0.2 * 0.3 + 0.15 * 0.2 + 0.1
    (score,) = NOW.weights.scores(np.array([row], np.float64), np.array([0.9]))
    assert score == pytest.approx(by_hand)


def test_a_search_that_does_not_say_what_a_weight_would_do_is_left_out() -> None:
    whole = [[0.8, 0.5, 0.4, 0.3, 0.2, 0.1]]
    assert known_rows(whole, 0.9, "calibrated", NOW) is not None
    for column in range(5):
        part = [[None if n == column else value for n, value in enumerate(whole[0])]]
        assert known_rows(part, 0.4, "calibrated", NOW) is None
    off = Ranked(Weights(0.4, 0.0, 0.2, 0.0), "calibrated")
    assert known_rows([[0.8, 0.5, None, 0.3, None, 0.1]], 0.4, "calibrated", off) is not None
    other = Ranked(NOW.weights, "rrf")
    fused = [[None, None, 0.4, 0.3, 0.2, 0.1]]
    assert known_rows(fused, 0.4, "rrf", other) is not None
    assert known_rows(fused, 0.4, "weighted", other) is None


def test_an_answer_stands_where_its_best_passage_does_and_ties_come_last() -> None:
    rows = np.zeros((4, 6))
    rows[:, 1] = [0.9, 0.5, 0.7, 0.5]
    given = Example(("q",), rows, np.array([0, 1, 1, 2]), np.array([0.0, 1.0, 0.0]), 1.0, 0.4)
    tied = Example(("r",), rows[:2] * 0, np.array([0, 1]), np.array([1.0, 0.0]), 1.0, 0.4)
    found = Examples([given, tied]).ndcg(NOW.weights)
    assert found.tolist() == pytest.approx(discount(np.array([2.0, 2.0])).tolist())


def test_an_interval_widens_where_values_hang_together() -> None:
    values = np.repeat(np.random.default_rng(1).normal(0, 1, 50), 20)
    apart = estimate(values, np.ones(1000), np.arange(1000))
    together = estimate(values, np.ones(1000), np.repeat(np.arange(50), 20))
    assert together.mean == pytest.approx(apart.mean)
    assert together.high - together.low > 3 * (apart.high - apart.low)
    assert set(asdict(apart)) == {"mean", "low", "high"}
    with pytest.raises(ValueError, match="no value"):
        estimate(np.array([]), np.array([]), np.array([], np.int64))
