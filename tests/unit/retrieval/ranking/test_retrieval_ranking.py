"""The pure parts of ranking: calibrated fusion, the sample behind it, proximity, caches."""

import math

import numpy as np
import pytest

from callslip.retrieval.caches import Cache
from callslip.retrieval.candidates.calibration import LEAST, ScoreCalibration
from callslip.retrieval.ranking.proximity import sequences
from callslip.retrieval.ranking.scored import Scored, fused, in_order
from callslip.stores.fusion import Candidate, Fusion, Scale, fuse
from callslip.stores.metrics import scores

SCALE = Scale(mean=0.8, deviation=0.01, most=20.0)


def test_calibrated_scores_do_not_depend_on_the_other_candidates() -> None:
    alone = fuse([("a", 0.84)], [("a", 8.0)], scale=SCALE)
    among = fuse([("b", 0.86), ("a", 0.84)], [("c", 19.0), ("a", 8.0)], scale=SCALE)
    score = 0.4 * 0.04 / 0.06 + 0.6 * 8 / 20
    assert alone[0].score == pytest.approx(score)
    assert {c.chunk_id: c.score for c in among}["a"] == pytest.approx(score)


def test_a_chunk_that_only_the_words_found_is_given_the_last_score_of_the_vectors() -> None:
    found = fuse([("a", 0.85), ("b", 0.83)], [("c", 10.0)], scale=SCALE)
    assert {c.chunk_id: c.score for c in found}["c"] == pytest.approx(0.4 * 0.5 + 0.6 * 0.5)


def test_without_a_scale_calibrated_is_weighted() -> None:
    legs = [("a", 0.9), ("b", 0.7)], [("b", 3.0), ("c", 1.0)]
    assert fuse(*legs, fusion="calibrated") == fuse(*legs, fusion="weighted")


def test_a_retriever_without_spread_says_nothing() -> None:
    flat = Scale(mean=0.8, deviation=0.0, most=0.0)
    assert fuse([("a", 0.8)], [("a", 1.0)], scale=flat)[0].score == 0


@pytest.mark.parametrize("fusion", ["calibrated", "weighted", "rrf"])
def test_a_chunk_that_a_retriever_returned_twice_is_one_candidate(fusion: Fusion) -> None:
    twice = [("a", 0.9), ("b", 0.85), ("a", 0.8)]
    found = fuse(twice, [("b", 3.0), ("b", 1.0)], fusion=fusion, scale=SCALE)
    assert sorted(candidate.chunk_id for candidate in found) == ["a", "b"]


def background(passages: int = 1000) -> ScoreCalibration:
    vectors = np.eye(LEAST, dtype=np.float32)
    return ScoreCalibration({"": vectors}, {"the": LEAST, "leave": 4}, LEAST, passages)


def test_the_scale_is_of_the_sample() -> None:
    scale = background().scale(np.eye(LEAST, dtype=np.float32)[0], "", "cosine", "the", True)
    assert scale is not None
    assert scale.mean == pytest.approx(1 / LEAST)
    assert scale.deviation == pytest.approx(math.sqrt(1 / LEAST - 1 / LEAST**2))
    assert scale.vector(1.0) == pytest.approx((1 - scale.mean) / (6 * scale.deviation))


@pytest.mark.parametrize("length", [1.0, 1e30, 1e-30])
@pytest.mark.parametrize("of_rows", [1.0, 1e30, 1e-30])
def test_the_moments_are_those_of_the_exact_scores(length: float, of_rows: float) -> None:
    """Also of vectors whose length has no value in 32 bits."""
    drawn = np.random.default_rng(7).standard_normal((LEAST + 1, 16))
    rows, vector = (of_rows * drawn[1:]).astype(np.float32), (length * drawn[0]).astype(np.float32)
    rows[3] = 0
    exact = scores("cosine", vector, rows)
    sample = ScoreCalibration({"": rows}, {}, LEAST, LEAST)
    mean, deviation = sample.moments(vector, "", "cosine")
    assert mean == pytest.approx(exact.mean(), abs=1e-7)
    assert deviation == pytest.approx(exact.std(), rel=1e-6)


def test_document_frequencies_of_the_sample_stand_for_the_collection() -> None:
    idf = background().idf("the leave unheard")
    assert idf["the"] == pytest.approx(math.log(1 + 0.5 / 1000.5))
    assert idf["leave"] == pytest.approx(math.log(1 + (1000 - 125 + 0.5) / 125.5))
    assert idf["unheard"] == pytest.approx(math.log(1 + 1000.5 / 0.5))
    assert background().most("leave leave") == pytest.approx(4.4 * idf["leave"])


def test_a_sample_that_is_too_small_gives_no_scale() -> None:
    few = ScoreCalibration({"": np.eye(4, dtype=np.float32)}, {}, 4, 4)
    assert few.scale(np.eye(4, dtype=np.float32)[0], "", "cosine", "a", True) is None
    assert background().scale(np.ones(4, np.float32), "other", "cosine", "a", True) is None
    assert background().scale(None, "other", "cosine", "a", True) is not None


def test_scores_that_are_cosines_already_are_not_scaled() -> None:
    scale = background().scale(None, "", "cosine", "leave", False)
    assert scale is not None
    assert scale.keyword(0.5) == 0.5


IDF = {"notice": 1.0, "period": 2.0, "long": 0.5}


@pytest.mark.parametrize(
    ("question", "passage", "share"),
    [
        ("notice period", "the notice period is", 1.0),
        ("notice period", "period of notice", 0.0),
        ("long notice period", "a notice period", 3.0 / 4.5),
        ("notice period notice period", "notice period", 3.0 / 6.0),
        ("notice", "notice", 0.0),
        ("", "notice", 0.0),
        ("notice period", "", 0.0),
        ("unknown words", "unknown words", 0.0),
    ],
)
def test_neighbours_of_the_question_are_looked_for(
    question: str, passage: str, share: float
) -> None:
    shares = sequences(question, {"a": passage}, IDF)
    assert shares.get("a", 0.0) == pytest.approx(share)


def test_a_long_question_is_looked_at_in_part() -> None:
    words = [f"w{n}" for n in range(10_000)]
    idf = dict.fromkeys(words, 1.0)
    passages = {"a": " ".join(words[:65])}
    assert sequences(" ".join(words), passages, idf) == {"a": 1.0}


def test_a_score_is_the_sum_of_its_parts_and_names_them() -> None:
    one, other = fused([Candidate("b", 0.5, None, None), Candidate("a", 0.5, None, None)])
    assert [s.chunk_id for s in in_order([one, other])] == ["b", "a"]  # ties keep their order
    lifted = one.plus("prior", 0.1).plus("memory", 0.0)
    assert lifted == Scored(one.candidate, {"fused": 0.5, "prior": 0.1}, 0.6)
    assert [s.chunk_id for s in in_order([lifted, other])] == ["b", "a"]


def test_a_cache_keeps_what_was_used_last_and_counts() -> None:
    cache: Cache[int] = Cache(2)
    for key in "ab":
        cache.put(key, ord(key))
    assert cache.get("a") == 97
    cache.put("c", 99)
    assert (cache.get("b"), cache.get("a"), cache.get("c")) == (None, 97, 99)
    assert (cache.hits, cache.misses) == (3, 1)


def test_a_cache_of_nothing_keeps_nothing_and_an_old_value_is_none() -> None:
    off: Cache[int] = Cache(0)
    off.put("a", 1)
    assert off.get("a") is None
    aged: Cache[int] = Cache(1, seconds=0)
    aged.put("a", 1)
    assert aged.get("a") is None
