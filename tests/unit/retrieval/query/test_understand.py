"""What is read from a question, and the moment that a search is filtered by."""

import time
from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from callslip.models.entities import Recognizer
from callslip.retrieval.query.as_of import (
    AsOf,
    choose,
    filter_known_validity,
    present,
    validity_filter,
)
from callslip.retrieval.query.understand import Understood, understand
from callslip.stores.properties.filters import matches, parse

TODAY = date(2026, 11, 22)
NOW = datetime(2026, 11, 22, 10, tzinfo=UTC)
SOON = datetime(2026, 11, 22, 10, 1, tzinfo=UTC)
RECOGNIZER = Recognizer()


def read(query: str) -> Understood:
    return understand(query, TODAY, RECOGNIZER)


def test_a_question_is_read_in_one_go() -> None:
    request = read("  2018년 12월 16일 기준\n아동수당법 제15조 신고는 어떻게 하나요? ")
    assert request.text == "2018년 12월 16일 기준 아동수당법 제15조 신고는 어떻게 하나요?"
    assert request.topic == "아동수당법 제15조 신고는 어떻게 하나요?"
    assert (request.lang, request.intent) == ("ko", "how-to")
    assert (request.as_of, request.time_words) == (date(2018, 12, 16), "2018년 12월 16일 기준")
    assert request.entities == ("아동수당법",)


@pytest.mark.parametrize(
    ("query", "intent"),
    [
        ("What is a sabbatical?", "definition"),
        ("육아휴직이란 무엇인가요?", "definition"),
        ("How do I reset my password?", "how-to"),
        ("출생신고 방법", "how-to"),
        ("근로기준법 제60조", "legal"),
        ("notice period in the termination policy", "legal"),
        ("When was Newcastle University founded?", "lookup"),
        ("공사 기간은 며칠인가요?", "lookup"),
        ("Who leads the team?", "entity"),
        ("담당자는 누구인가요?", "entity"),
        ("green tea", "general"),
    ],
)
def test_the_intent_is_told_by_words(query: str, intent: str) -> None:
    assert read(query).intent == intent


def test_a_question_of_nothing_but_time_is_its_own_topic() -> None:
    assert read("현재?").topic == "현재?"
    assert read("parental leave (as of 2019)").topic == "parental leave"
    assert read("as of 2019, parental leave").topic == "parental leave"


def test_a_year_that_can_be_the_topic_counts_where_rules_are_asked_about() -> None:
    assert read("What was the leave policy in 2019?").as_of == date(2019, 12, 31)
    assert read("Who won the championship in 2000?").as_of is None
    assert read("2019년에 적용된 세율").as_of == date(2019, 12, 31)
    assert read("2024년 세계경제 전망").as_of is None
    assert read("population as of 2010").as_of == date(2010, 12, 31)


@pytest.mark.parametrize(
    "query", ["", " ", "a", "가", "💥💥", "\0", "漢字 かな 한글 latin", "a" * 9]
)
def test_odd_questions_are_read_without_error(query: str) -> None:
    assert read(query).as_of is None


def test_ten_thousand_words_are_read_in_bounded_time() -> None:
    for word in ("law ", "법률 2019년 ", "Act of the ", "as of 2019 "):
        read(word)  # loads what it needs
        start = time.perf_counter()
        read(word * 10_000)
        assert time.perf_counter() - start < 2


def test_the_validity_filter_lets_pass_what_is_in_force_and_what_has_no_date() -> None:
    where = validity_filter(None, date(2020, 1, 1))
    passing = [
        {},
        {"valid_from": "2020-01-01"},
        {"valid_to": "2020-01-02"},
        {"valid_from": "once", "valid_to": "never"},
        {"valid_from": "2019-06-01", "valid_to": "2020-01-01T00:00:01Z"},
    ]
    hidden = [
        {"valid_from": "2020-01-02"},
        {"valid_to": "2020-01-01"},
        {"valid_from": "2021-01-01", "valid_to": "2019-01-01"},
    ]
    assert all(matches(where, p) for p in passing)
    assert not any(matches(where, p) for p in hidden)


def test_the_validity_filter_keeps_the_filter_of_the_request() -> None:
    where = validity_filter(parse({"a": 1}, {"b": 1, "c": 1}), NOW)
    assert matches(where, {"a": 1, "c": 1, "valid_to": "2026-11-22T10:00:01Z"})
    assert not matches(where, {"a": 1, "c": 1, "valid_to": "2026-11-22T10:00:00Z"})
    assert not matches(where, {"a": 1})


def test_a_collection_without_dates_has_no_validity_filter() -> None:
    assert filter_known_validity(None, AsOf(NOW, "default"), {"year"}) is None
    assert filter_known_validity(None, AsOf(None, "given"), {"valid_to"}) is None
    assert filter_known_validity(None, AsOf(NOW, "default"), {"valid_to"}) == validity_filter(
        None, NOW
    )


def test_the_request_goes_before_the_question_and_this_before_the_default() -> None:
    day = datetime(2019, 12, 31, tzinfo=UTC)
    assert choose("2019-12-31", read("as of 2001"), "now", NOW) == AsOf(day, "given")
    assert choose("any", read("as of 2001"), "now", NOW) == AsOf(None, "given")
    assert choose("now", read("as of 2001"), "any", NOW) == AsOf(SOON, "given")
    assert choose("", read("as of 2019"), "any", NOW) == AsOf(day, "understood", "as of 2019")
    assert choose(None, read("현재 규정"), "any", NOW) == AsOf(SOON, "understood", "현재")
    assert choose(None, read("leave"), "any", NOW) == AsOf(None, "default")
    assert choose(None, read("leave"), "now", NOW) == AsOf(SOON, "default")


def test_what_begins_with_a_day_is_in_force_where_the_day_has_begun() -> None:
    seoul = timezone(timedelta(hours=9))
    assert present(datetime(2026, 3, 1, 0, 30, tzinfo=seoul)) == datetime(2026, 3, 1, tzinfo=UTC)
    assert present(datetime(2026, 3, 1, 12, tzinfo=seoul)) == datetime(2026, 3, 1, 3, 1, tzinfo=UTC)
