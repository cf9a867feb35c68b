"""The bonus of chunks that helped before, and chances for the others."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from callslip.retrieval.chance import generator
from callslip.retrieval.ranking.memory import (
    QuestionMemory,
    bonuses,
    explore,
    likeness,
    sampled,
)
from callslip.stores.chunk_stats import UNIT, WEEK, ChunkStats, Win, decay, whole_of
from callslip.stores.records import Vector

NOW = 1e9
LIMITS = {"weight": 0.15, "half_life_weeks": 6.0, "now": NOW}


def towards(degrees: float) -> Vector:
    """A unit vector at this angle to the first axis."""
    angle = np.radians(degrees)
    return np.array([np.cos(angle), np.sin(angle), 0], np.float32)


def known(chunk_id: str, degrees: float, wins: int = 3, at: float = NOW) -> ChunkStats:
    """A chunk that answered a question of this direction so many times."""
    stats = ChunkStats(chunk_id, "d", utility_at=at)
    for _ in range(wins):
        stats, _ = stats.add(Win(at, True, "legal", ("a",), towards(degrees)), at, 6.0)
    return stats


def test_decay_halves_with_each_half_life() -> None:
    assert decay(8, 0, 6) == 8
    assert decay(8, 6, 6) == 4
    assert decay(8, 12, 6) == 2
    assert decay(8, -3, 6) == 8, "a clock that went back adds nothing"


def test_weight_zero_no_vector_and_nothing_known_give_no_bonus_at_all() -> None:
    scores, stats = {"a": 1.0, "b": 0.5}, {"b": known("b", 0)}
    request = QuestionMemory(towards(0))
    assert bonuses(scores, stats, request, **LIMITS | {"weight": 0.0}) == {}
    assert bonuses(scores, {}, request, **LIMITS) == {}
    assert bonuses(scores, stats, QuestionMemory(None), **LIMITS) == {}
    assert bonuses({}, stats, request, **LIMITS) == {}
    assert bonuses(scores, stats, request, **LIMITS) != {}


def test_an_unlike_question_gets_no_bonus_however_often_the_chunk_has_won() -> None:
    stats = {"b": known("b", 0, wins=1000)}
    assert bonuses({"a": 1.0, "b": 0.5}, stats, QuestionMemory(towards(24)), **LIMITS) == {}


def test_cosines_are_taken_less_the_centre_where_it_is_known() -> None:
    """Two questions that share nothing but what all questions share are not alike."""
    centre = np.array([0.9, 0, 0.05], np.float32)
    one, other = towards(10), towards(-10)
    rows = np.stack([other, towards(11)])
    assert likeness(one, None, rows)[0][0] > 0, "their bare cosine is .94"
    assert likeness(one, centre, rows)[0] == [0, 1]


def test_a_chunk_is_lifted_towards_the_best_one_and_past_it_only_for_the_same_question() -> None:
    scores = {"a": 1.0, "b": 0.95}
    stats = {"b": known("b", 0)}
    near = bonuses(scores, stats, QuestionMemory(towards(15)), **LIMITS)["b"]
    assert 0.95 < 0.95 + near < 1.0
    same = bonuses(scores, stats, QuestionMemory(towards(0)), **LIMITS)["b"]
    assert same == pytest.approx(0.15)


def test_old_wins_count_less_and_losses_count_against_them() -> None:
    scores, request = {"a": 1.0, "b": 0.1}, QuestionMemory(towards(21))
    new = bonuses(scores, {"b": known("b", 0)}, request, **LIMITS)["b"]
    old = bonuses(scores, {"b": known("b", 0, at=NOW - 24 * WEEK)}, request, **LIMITS)["b"]
    assert old < new
    lost = known("b", 0)
    for _ in range(9):
        lost, _ = lost.add(Win(NOW, False, vector=towards(0)), NOW, 6.0)
    assert bonuses(scores, {"b": lost}, request, **LIMITS) == {}
    assert np.allclose(lost.centroid, towards(0)), "only wins say what it answers"


def test_the_intent_of_the_question_adds_a_little() -> None:
    scores, stats = {"a": 1.0, "b": 0.1}, {"b": known("b", 0)}
    plain = bonuses(scores, stats, QuestionMemory(towards(22)), **LIMITS)["b"]
    assert bonuses(scores, stats, QuestionMemory(towards(22), "legal"), **LIMITS)["b"] > plain
    assert bonuses(scores, stats, QuestionMemory(towards(22), "how-to"), **LIMITS)["b"] == plain


@given(
    st.integers(0, 10**6),
    st.floats(0, 180),
    st.floats(0, 1),
    st.lists(st.floats(0, 1), min_size=2, max_size=20),
)
def test_a_bonus_is_never_below_zero_or_above_the_cap(
    wins: int, degrees: float, weight: float, content: list[float]
) -> None:
    scores = {str(n): score for n, score in enumerate(content)}
    stats = {i: ChunkStats(i, "d", wins, 0, NOW, float(wins), NOW) for i in scores}
    whole = whole_of(towards(0))
    stats = {
        i: ChunkStats(i, "d", wins, 0, NOW, float(wins), NOW, {}, {}, 1, whole) for i in scores
    }
    found = bonuses(
        scores, stats, QuestionMemory(towards(degrees)), weight=weight, half_life_weeks=6, now=NOW
    )
    assert all(0 < bonus <= weight for bonus in found.values())


def test_a_vector_of_another_length_is_counted_without_it() -> None:
    stats = known("a", 0)
    more, added = stats.add(Win(NOW, True, vector=np.ones(5, np.float32)), NOW, 6.0)
    assert (more.useful, more.questions, added) == (4, 3, False)
    assert bonuses({"a": 1.0}, {"a": more}, QuestionMemory(np.ones(5, np.float32)), **LIMITS) == {}


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 360), st.floats(0, 40)), max_size=12))
def test_taking_every_outcome_back_in_any_order_leaves_nothing(
    given_: list[tuple[bool, float, float]],
) -> None:
    stats = ChunkStats("a", "d", utility_at=NOW)
    added = []
    for useful, degrees, weeks in given_:
        at = stats.utility_at + weeks * WEEK
        win = Win(at, useful, "legal", ("x",), towards(degrees))
        stats, with_vector = stats.add(win, at, 6.0)
        added.append((win, with_vector))
    end = stats.utility_at + WEEK
    for win, with_vector in sorted(added, key=lambda each: -abs(each[0].at - NOW - WEEK)):
        stats = stats.take(win, end, 6.0, with_vector=with_vector)
    assert (stats.useful, stats.useless, stats.questions, stats.question_sum) == (0, 0, 0, None)
    assert (dict(stats.intents), dict(stats.entities)) == ({}, {})
    assert stats.utility == pytest.approx(0, abs=1e-9)


def test_the_centroid_is_the_mean_of_unit_vectors_whatever_their_order() -> None:
    vectors = [towards(d) * s for d, s in ((0, 1), (20, 3), (350, 0.1))]
    found = []
    for order in (vectors, vectors[::-1]):
        stats = ChunkStats("a", "d")
        for vector in order:
            stats, _ = stats.add(Win(NOW, True, vector=vector), NOW, 6.0)
        found.append(stats)
    assert found[0].question_sum is not None
    assert (found[0].question_sum == found[1].question_sum).all()
    mean = np.mean([v / np.linalg.norm(v) for v in vectors], axis=0)
    assert np.allclose(found[0].centroid, mean, atol=2 / UNIT + 1e-7)


def test_epsilon_lifts_one_untried_candidate_in_a_share_of_searches() -> None:
    order = [str(n) for n in range(100)]
    tried, chosen = {"12", "13"}, []
    for n in range(2000):
        found, explored = explore(order, tried, 10, 0.15, generator(f"trace {n}"))
        assert sorted(found) == sorted(order)
        assert found[:9] == order[:9], "what stands above the last place stays"
        if explored:
            assert found[9] == explored.chunk_id
            assert explored.position == 10
            assert explored.probability == pytest.approx(0.15 / 28)
            chosen.append(explored.chunk_id)
        else:
            assert found == order
    assert 0.12 < len(chosen) / 2000 < 0.18
    assert set(chosen) == {str(n) for n in range(10, 40)} - tried


def test_nothing_is_explored_where_the_ratio_is_zero_or_all_was_tried_or_nothing_is_below() -> None:
    order = list("abcdef")
    chance = generator("x")
    assert explore(order, set(), 5, 0.0, chance) == (order, None)
    assert explore(order, set(order), 5, 1.0, chance) == (order, None)
    assert explore(order, set(), 6, 1.0, chance) == (order, None)
    assert explore([], set(), 5, 1.0, chance) == ([], None)


def test_a_search_of_fewer_than_five_hits_never_explores() -> None:
    order = list("abcdefghij")
    for n in range(200):
        for shown in range(5):
            assert explore(order, set(), shown, 1.0, generator(str(n))) == (order, None)
        lifted, explored = explore(order, set(), 5, 1.0, generator(str(n)))
        assert explored
        assert lifted[:4] == order[:4]


def test_thompson_sampling_lowers_bonuses_of_what_is_uncertain_more() -> None:
    given_ = {"sure": 0.1, "new": 0.1}
    stats = {"sure": ChunkStats("sure", "d", 200, 2), "new": ChunkStats("new", "d", 1, 0)}
    drawn = [sampled(given_, stats, generator(str(n))) for n in range(400)]
    assert all(0 <= value <= 0.1 for each in drawn for value in each.values())
    mean = {name: np.mean([each[name] for each in drawn]) for name in given_}
    assert mean["sure"] > 0.095
    assert 0.055 < mean["new"] < 0.08


def test_chance_is_the_same_when_a_trace_is_replayed() -> None:
    order = [str(n) for n in range(100)]
    assert explore(order, set(), 10, 0.9, generator("t")) == explore(
        order, set(), 10, 0.9, generator("t")
    )
    assert generator("t").random() != generator("u").random()
