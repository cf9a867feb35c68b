"""What a sentence depends on is quoted with it; numbers of a question must be in the passage."""

import pytest

from callslip.retrieval.evidence.context import lead_of, leads_in, leans, list_after
from callslip.retrieval.evidence.numbers import (
    asks_count,
    has_count,
    has_later_years,
    has_numbers,
    named_numbers,
)
from callslip.retrieval.evidence.sentences import sentences


def with_list(text: str, at: int = 0) -> str:
    spans = sentences(text)
    return text[spans[at].start : spans[list_after(text, spans, at)].end]


@pytest.mark.parametrize(
    "sentence",
    [
        "You need:",
        "The requirements are as follows.",
        "Send the following documents:",
        "신청 서류는 다음과 같습니다.",
        "수수료는 다음 각 호와 같다.",
        "환경 변수를 다음처럼 설정하면 된다.",
    ],
)
def test_these_sentences_announce_a_list(sentence: str) -> None:
    assert leads_in(sentence)


@pytest.mark.parametrize(
    "sentence",
    ["It follows that leave is paid.", "다음 달에 신청합니다.", "At 18:30 it opens.", "Next year."],
)
def test_these_sentences_do_not(sentence: str) -> None:
    assert not leads_in(sentence)


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        (
            "You need:\n- a form\n- a card. It costs 5.\n\nMore.",
            "You need:\n- a form\n- a card. It costs 5.",
        ),
        ("You need:\n\n1. a form\n2. a card\nThen wait.", "You need:\n\n1. a form\n2. a card"),
        (
            "서류는 다음과 같다.\n1. 신청서\n2. 신분증\n끝.",
            "서류는 다음과 같다.\n1. 신청서\n2. 신분증",
        ),
        ("Run:\n\n    $ make up\n\nDone.", "Run:\n\n    $ make up"),
        ("It has:\n(10) ten\n(ii) two\nA. an a\nEnd", "It has:\n(10) ten\n(ii) two\nA. an a"),
        ("You need: a form. Then wait.", "You need: a form."),
        ("Nothing follows:", "Nothing follows:"),
        ("Nothing follows:\nNo entry here.", "Nothing follows:"),
    ],
)
def test_a_list_is_quoted_with_its_announcement(text: str, whole: str) -> None:
    assert with_list(text) == whole


@pytest.mark.parametrize(
    ("text", "entry", "lead"),
    [
        ("Guests must not:\n- smoke\n- bring dogs\nThe rest is fine.", "bring", "Guests"),
        ("Guests must not:\n- smoke\n- bring dogs\nThe rest is fine.", "The rest", None),
        ("다음 각 호에는 지급하지 아니한다.\n1. 연금 수급자\n2. 대학생", "2. 대학생", "다음 각"),
        ("① 다음 각 호는 제외한다.\n1. 갑\n2. 을\n② 신청은 서면으로 한다.", "② 신청", None),
        ("제5조 다음 각 호는 제외한다.\n1. 갑\n2. 을\n② 신청은 서면으로 한다.", "② 신청", None),
        (
            "다음 각 호와 같다.\n1. 다음 각 목의 자를 말한다.\n가. 갑\n나. 을\n2. 병",
            "을",
            "1. 다음",
        ),
        (
            "다음 각 호와 같다.\n1. 다음 각 목의 자를 말한다.\n가. 갑\n나. 을\n2. 병",
            "2. 병",
            "다음 각 호와",
        ),
        ("Apply early.\n- by mail\n- by phone", "by phone", None),
    ],
)
def test_an_entry_knows_the_sentence_that_announces_its_list(
    text: str, entry: str, lead: str | None
) -> None:
    spans = sentences(text)
    at = next(n for n, span in enumerate(spans) if entry in text[span.start : span.end])
    announcing = lead_of(text, spans, at)
    assert (announcing is None) is (lead is None)
    if announcing is not None and lead is not None:
        assert text[spans[announcing].start :].startswith(lead)


@pytest.mark.parametrize(
    ("text", "depends"),
    [
        ("Leave is paid. However, it ends.", True),
        ("휴가는 유급이다. 다만, 1년 미만은 제외한다.", True),
        ("Leave is paid. For example, mothers get it.", True),
        ("Leave is paid. **However,** it ends.", True),
        ("Leave is paid.\n\nHowever, it ends.", False),
        ("Leave is paid. Howevers are rare.", False),
        ("Leave is paid. 즉시 신청한다.", False),
        ("Leave is paid. Sophie knows.", False),
    ],
)
def test_a_connective_depends_on_the_sentence_before(text: str, depends: bool) -> None:
    spans = sentences(text)
    assert leans(text, spans, 1) is depends
    assert not leans(text, spans, 0)


@pytest.mark.parametrize(
    ("question", "numbers"),
    [
        ("When will Vue 4 be released?", {"4"}),
        ("Vue 3.5는 언제 릴리스되었나요?", {"3.5"}),
        ("제5조는 무엇을 정하나요?", {"5조"}),
        ("제 12 조의 2에 따른 휴가는?", {"12조의2"}),
        ("14조에 따른 병가는?", {"14조"}),
        ("예산 14조의 출처는?", set()),
        ("제5조제3항과 제 2 장은?", {"5조", "3", "2"}),
        ("Leave under Sec. 14, Art. 3 and § 5?", {"14", "3", "5"}),
        ("Which bonds does Section 54 name?", {"54"}),
        ("In Vue 4, how are slots named?", {"4"}),
        ("Within 30 days of what must it be sent?", set()),
        ("Is 5 GB enough?", set()),
        ("What is the maximum salary in 2024?", set()),
        ("Who won in March 2024?", set()),
        ("Who gets the 1,000 won grant?", set()),
        ("Is COVID19 or COVID-19 treated?", set()),
        ("What are the 2 types of leave?", set()),
    ],
)
def test_a_question_is_about_these_numbers(question: str, numbers: set[str]) -> None:
    assert named_numbers(question) == numbers


def test_a_text_of_later_years_alone_is_about_another_time() -> None:
    assert has_later_years("For flats from 1 January 2026 on; 500 euros.", 2024)
    assert not has_later_years("For flats from 1 January 2026 on; 500 euros.", 2026)
    assert not has_later_years("Since 2019; from 2026 on 600 euros.", 2024)
    assert not has_later_years("2,026 euros, 2026,100 and 12026", 2024)
    assert not has_later_years("500 euros", 2024)
    assert has_later_years("2026년 1월 1일부터 500만 원", 2024)


def test_numbers_are_compared_whole() -> None:
    assert has_numbers(frozenset({"4"}), "Vue 4.")
    assert not has_numbers(frozenset({"4"}), "Vue 3.4 is here, since December 14")
    assert has_numbers(frozenset({"1000"}), "1,000 won")
    assert has_numbers(frozenset({"3"}), "Python 3.12")
    assert has_numbers(frozenset(), "")


def test_an_article_is_no_other_number() -> None:
    assert has_numbers(frozenset({"13조"}), "제13조(병가) 병가는 30일로 한다.")
    assert has_numbers(frozenset({"13조"}), "제 13 조의 병가")
    assert has_numbers(frozenset({"13조"}), "Article 13 Sick leave")
    assert not has_numbers(frozenset({"30조"}), "제13조(병가) 병가는 30일로 한다.")
    assert not has_numbers(frozenset({"12조"}), "제12조의2(휴가)")
    assert not has_numbers(frozenset({"12조의2"}), "제12조(휴가) 휴가는 2일로 한다.")
    assert has_numbers(frozenset({"12조의2"}), "제12조의2(휴가)")


def test_only_a_number_answers_how_many() -> None:
    assert asks_count("How many parking spaces are there?")
    assert asks_count("수수료는 얼마인가요?")
    assert not asks_count("얼마나 자주 열리나요?")
    assert not asks_count("How often does it open?")
    assert has_count("Each reader may take 12 books for EUR 5.")
    assert has_count("Between 5 and 6 the doors are closed.")
    assert has_count("It costs NOK 50.")
    assert has_count("Staff have Annual Leave 20 days.")
    assert not has_count("Ask the office of Region 5.")
    assert not asks_count("휴가는 몇 가지인가요?")
