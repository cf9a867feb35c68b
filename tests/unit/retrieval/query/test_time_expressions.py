"""Which time a question asks about, over a set of expressions in both languages."""

import json
from collections import Counter
from datetime import date
from pathlib import Path

import pytest

from callslip.retrieval.query.time_expressions import read_time

TODAY = date(2026, 11, 22)
SET = Path(__file__).parents[3] / "data" / "time_expressions.jsonl"
QUESTIONS = [json.loads(line) for line in SET.read_text("utf-8").splitlines()]


@pytest.mark.long
@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question["question"])
def test_the_day_and_the_words_that_say_it(question: dict[str, str | None]) -> None:
    output = read_time(str(question["question"]), TODAY)
    assert (output.day.isoformat() if output else None) == question["as_of"]
    assert (output.words if output else "") == question["words"]


def test_the_set_has_both_languages_and_as_many_that_name_no_time() -> None:
    kinds = Counter((q["question"].isascii(), q["as_of"] is None) for q in QUESTIONS)
    assert len(QUESTIONS) >= 120
    assert min(kinds.values()) >= 25


@pytest.mark.parametrize(
    ("question", "day"),
    [("last month", "2024-02-29"), ("2년 전", "2022-03-31"), ("a month ago", "2024-02-29")],
)
def test_a_shorter_month_ends_on_its_own_last_day(question: str, day: str) -> None:
    output = read_time(question, date(2024, 3, 31))
    assert output
    assert output.day.isoformat() == day


@pytest.mark.parametrize(
    ("question", "firm"),
    [
        *(("as of 2019", True), ("last year", True), ("2019년 당시", True), ("작년", True)),
        *(("in 2019", False), ("2019년에", False), ("before 2015", False)),
    ],
)
def test_words_that_can_mean_the_topic_are_not_firm(question: str, firm: bool) -> None:
    output = read_time(question, TODAY)
    assert output
    assert output.firm is firm


def test_long_and_odd_texts_take_bounded_time() -> None:
    for text in (
        "as of " * 20_000,
        "2019년 " * 20_000,
        "1" * 200_000,
        "of " * 60_000,
        "\0💥" * 9_000,
    ):
        read_time(text, TODAY)
    assert read_time("x" * 5_000 + " as of 2019", TODAY) is None


def test_days_that_no_calendar_has_are_no_time() -> None:
    for question in (
        "as of 2019-02-30",
        "2019년 13월 40일 기준",
        "0년 전",
        "in force on 99/99/2019",
    ):
        output = read_time(question, TODAY)
        assert output is None or output.day <= TODAY
