"""Sufficiency: three numbers of the evidence, and what small and odd collections make of them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agent_parts import ANALYZER, FACTS, Remembering, make_setup
from hypothesis import given
from hypothesis import strategies as st

from callslip.models.embedders.contract import Embedder
from callslip.models.embedders.none import LexicalEmbedder
from callslip.retrieval.candidates.calibration import LEAST, NO_SAMPLE, ScoreCalibration
from callslip.retrieval.evidence.overlap import covered
from callslip.retrieval.evidence.sufficiency import (
    BOTH,
    NONE,
    SMALL,
    WORDS_ALONE,
    Evidence,
    Weights,
    sigmoid,
    weighed,
)
from callslip.stores.contract import Store
from callslip.stores.metrics import Metric
from callslip.stores.tfidf.store import TfidfStore

pytest_plugins = ["agent_fixtures"]

LEAVE = "Parental leave lasts 20 weeks."
QUERIES = "How many weeks does parental leave last?"
UNRELATED = (
    "Who won the world cup in 1998?",
    "How do I bake sourdough?",
    "몽골의 수도는 어디인가요?",
)
SHARE = st.floats(0, 1)


@given(SHARE, SHARE, SHARE, SHARE, st.sampled_from([BOTH, WORDS_ALONE, SMALL]))
def test_more_evidence_is_more_confidence(
    a: float, b: float, c: float, more: float, v: Weights
) -> None:
    known = Evidence(a, b, c, v)
    for richer in (
        Evidence(a + more, b, c, v),
        Evidence(a, b + more, c, v),
        Evidence(a, b, c + more, v),
    ):
        assert richer.confidence >= known.confidence
    assert 0 <= known.confidence <= 1
    assert NONE.confidence < 0.05


@given(st.floats(allow_nan=False))
def test_a_confidence_is_a_probability(logit: float) -> None:
    assert 0 <= sigmoid(logit) <= 1
    assert sigmoid(-logit) == pytest.approx(1 - sigmoid(logit))


TERMS = st.sampled_from(["leave", "lunch", "card", "20", "휴가"])
WEIGHTS = st.dictionaries(TERMS, st.floats(0.01, 9), max_size=5)


@given(WEIGHTS, st.frozensets(TERMS), st.frozensets(TERMS))
def test_who_says_more_words_covers_more(
    idf: dict[str, float], reply: frozenset[str], more: frozenset[str]
) -> None:
    assert 0 <= covered(idf, reply) <= covered(idf, reply | more) <= 1 + 1e-9
    assert covered(idf, frozenset(idf)) == pytest.approx(1.0 if idf else 0.0)


def test_function_words_weigh_nothing_unless_there_are_no_others() -> None:
    known = ScoreCalibration({}, {"leave": 3}, LEAST, LEAST)
    for background in (NO_SAMPLE, known):
        assert set(weighed(background, ANALYZER.analyze("How long is the leave?"))) == {
            "long",
            "leav",
        }
        assert set(weighed(background, ANALYZER.analyze("who is it?"))) == {"who", "i", "it"}
        assert weighed(background, "") == {}


def test_a_word_that_no_passage_has_weighs_as_the_question_s_other_words() -> None:
    known = ScoreCalibration({}, {"leav": 3, "card": 9, "lunch": 30}, LEAST, LEAST)
    weights = weighed(known, "leav card lunch email")
    assert weights["email"] == weights["card"] < weights["leav"]
    assert weighed(known, "email")["email"] > weights["leav"]


def memory(_: Path) -> Store | None:
    return None


def tfidf(folder: Path) -> Store | None:
    return TfidfStore(folder / "tfidf")


KINDS: dict[str, tuple[Callable[[Path], Store | None], bool, Metric]] = {
    "cosine": (memory, True, "cosine"),
    "l2": (memory, True, "l2-squared"),
    "manhattan": (memory, True, "manhattan"),
    "tfidf": (tfidf, True, "cosine"),
    "no embedder": (memory, False, "cosine"),
    "no embedder in tfidf": (tfidf, False, "cosine"),
}


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [1, 5, 31])
def test_a_collection_of_any_size_answers_what_it_says_and_nothing_else(
    tmp_path: Path, meaning: Remembering, kind: str, size: int
) -> None:
    store, embeds, metric = KINDS[kind]
    embedder: Embedder = meaning if embeds else LexicalEmbedder()
    with make_setup(tmp_path, embedder, store=store(tmp_path), metric=metric) as home:
        home.put("leave.txt", LEAVE)
        for n in range(min(4, size - 1)):
            home.put(f"{n}.txt", *FACTS[: size - 1][n::4])
        answer = home.ask(QUERIES)
        assert answer.answered, answer.verdict
        assert answer.text == f"{LEAVE} [1]"
        for question in UNRELATED:
            answer = home.ask(question)
            assert not answer.answered, (question, answer.text, answer.verdict)


def test_a_korean_document_of_one_sentence_answers(tmp_path: Path, meaning: Remembering) -> None:
    with make_setup(tmp_path, meaning) as home:
        home.put("휴직.txt", "육아휴직 기간은 1년 이내로 한다.")
        assert home.ask("육아휴직 기간은 얼마인가요?").answered
        assert not home.ask("주차 요금은 얼마인가요?").answered


@pytest.mark.parametrize("embeds", [True, False])
def test_documents_that_say_the_same_are_no_rivals(
    tmp_path: Path, meaning: Remembering, embeds: bool
) -> None:
    with make_setup(tmp_path, meaning if embeds else LexicalEmbedder()) as home:
        home.furnish()
        home.put("leave.txt", LEAVE)
        before = home.ask(QUERIES).verdict.confidence
        for n in range(5):
            home.put(f"copy{n}.txt", f"{LEAVE}" if n % 2 else f"{LEAVE.upper()}")
        answer = home.ask(QUERIES)
        assert answer.answered
        assert answer.verdict.confidence == pytest.approx(before, abs=0.25)


def test_a_document_that_says_otherwise_is_a_rival(tmp_path: Path, meaning: Remembering) -> None:
    with make_setup(tmp_path, meaning) as home:
        home.furnish()
        home.put("leave.txt", LEAVE)
        before = home.ask(QUERIES)
        home.put("other.txt", "Parental leave for how many weeks? It lasts 30 weeks in the north.")
        assert home.ask(QUERIES).verdict.confidence < before.verdict.confidence


def test_what_the_agent_says_of_its_evidence_is_between_bounds(
    tmp_path: Path, meaning: Remembering
) -> None:
    with make_setup(tmp_path, meaning) as home:
        home.furnish()
        for question in (QUERIES, *UNRELATED, FACTS[0], FACTS[-1]):
            home.ask(question)
            facts: list[Any] = [r.facts for r in home.reports if r.node == "rerank_diversify"]
            assert all(-0.5 <= f["content"] <= 1.6 for f in facts)
            assert all(0 <= f["coverage"] <= 1 for f in facts)
            assert all(f["margin"] <= f["content"] + 1e-3 for f in facts)
