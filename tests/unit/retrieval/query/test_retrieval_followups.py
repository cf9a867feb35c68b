"""Questions that lean on earlier ones, made to stand by themselves by rules."""

from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callslip.retrieval.query.followups import Standing, stand
from callslip.retrieval.query.understand import stated_time

LEAVE = Standing("How long is parental leave?")
휴직 = Standing("육아휴직 기간은 얼마인가요?")
"""What was asked before."""


@pytest.mark.parametrize(
    ("question", "understood"),
    [
        ("And for twins?", "How long is parental leave for twins?"),
        ("for fathers?", "How long is parental leave for fathers?"),
        ("of fathers", "How long is parental leave of fathers?"),
        ("and in Seoul", "How long is parental leave in Seoul?"),
        ("In 2020?", "How long is parental leave In 2020?"),
        ("As of 2019?", "How long is parental leave As of 2019?"),
        ("okay, and after 2020?", "How long is parental leave after 2020?"),
        ("Under 18?", "How long is parental leave Under 18?"),
        ("If I am ill?", "How long is parental leave If I am ill?"),
        ("for staff who travel?", "How long is parental leave for staff who travel?"),
        ("by those who are ill", "How long is parental leave by those who are ill?"),
        ("until it is over?", "How long is parental leave until it is over?"),
        ("during times I am away?", "How long is parental leave during times I am away?"),
        ("and in early May?", "How long is parental leave in early May?"),
        ("for a can of paint?", "How long is parental leave for a can of paint?"),
        ("And twins?", "How long is parental leave twins?"),
        ("What about interns?", "How long is parental leave interns?"),
        ("how about part-time staff", "How long is parental leave part-time staff?"),
        ("What if I resign?", "How long is parental leave I resign?"),
        ("Why?", "How long is parental leave Why?"),
        ("Who approves it?", "Who approves it parental leave?"),
        ("What is the deadline for it?", "What is the deadline for it parental leave?"),
        ("Is that paid?", "Is that paid parental leave?"),
        ("Does this apply to interns?", "Does this apply to interns parental leave?"),
        ("How does an intern apply for it?", "How does an intern apply for it parental leave?"),
        ("Who pays their rent?", "Who pays their rent parental leave?"),
        ("Do they have to return?", "Do they have to return parental leave?"),
        (
            "Can I take it in two parts if my child is adopted?",
            "Can I take it in two parts if my child is adopted parental leave?",
        ),
    ],
)
def test_an_english_question_leans_on_the_one_before(question: str, understood: str) -> None:
    assert stand(question, [LEAVE]).text == understood


@pytest.mark.parametrize(
    ("question", "understood"),
    [
        ("쌍둥이는?", "육아휴직 기간은 얼마인가요 쌍둥이는?"),
        ("그럼 아빠는?", "육아휴직 기간은 얼마인가요 아빠는?"),
        ("그리고 계약직은요?", "육아휴직 기간은 얼마인가요 계약직은요?"),
        ("계약직도요?", "육아휴직 기간은 얼마인가요 계약직도요?"),
        ("쌍둥이도?", "육아휴직 기간은 얼마인가요 쌍둥이도?"),
        ("2020년에는?", "육아휴직 기간은 얼마인가요 2020년에는?"),
        ("제주도는?", "육아휴직 기간은 얼마인가요 제주도는?"),
        ("쌍둥이라면?", "육아휴직 기간은 얼마인가요 쌍둥이라면?"),
        ("쌍둥이의 경우?", "육아휴직 기간은 얼마인가요 쌍둥이의 경우?"),
        ("그것은 유급인가요?", "그것은 유급인가요 육아휴직 기간은?"),
        ("그 휴가는 유급인가요?", "그 휴가는 유급인가요 육아휴직 기간은?"),
        ("해당 기간에 급여를 받나요?", "해당 기간에 급여를 받나요 육아휴직 기간은?"),
        ("이 경우 급여를 받나요?", "이 경우 급여를 받나요 육아휴직 기간은?"),
    ],
)
def test_a_korean_question_leans_on_the_one_before(question: str, understood: str) -> None:
    assert stand(question, [휴직]).text == understood


@pytest.mark.parametrize(
    "question",
    [
        "How long is parental leave?",
        "What does the canteen cost?",
        "How are books renewed?",
        "Who is the head of IT?",
        "How do I contact IT?",
        "Is it possible to work from home?",
        "How long does it take to get a passport?",
        "At what age do people retire?",
        "To whom do I report?",
        "For which rooms is a card needed?",
        "At lunch who answers phones?",
        "In June who visits schools?",
        "In Seoul is parking free?",
        "On Sundays does the pool open?",
        "By law, is overtime capped?",
        "If sick, who pays me?",
        "In Korea how long is leave?",
        "Can an employee cash out his leave?",
        "How do tenants get their deposit back?",
        "Must visitors show their card?",
        "Does a lease end when it is sold?",
        "Is there a form?",
        "I'd like to put numbers in a column in ascending order, how do I do this?",
        "Which city did the company leave when it closed its last plant in Europe?",
        "환수금을 기한까지 내지 않을 경우 연체이자는 어떻게 산정되며, 그 계산기간은 며칠인가요?",
        "Can I bring a dog into the reading room?",
        "parental leave twins",
        "연차는 며칠인가요?",
        "주차 요금은 얼마인가요?",
        "도서관은 몇 시에 여나요?",
        "누가 승인하나요?",
        "연차휴가 제도?",
        "지원 한도",
        "출산장려금 신청 서류는 무엇인가요?",
    ],
)
@pytest.mark.parametrize("before", [LEAVE, 휴직])
def test_what_stands_by_itself_stays_as_it_is(question: str, before: Standing) -> None:
    assert stand(question, []) == Standing(question)
    assert stand(question, [before]) == Standing(question)


def requests(*questions: str) -> list[Standing]:
    before: list[Standing] = []
    for question in questions:
        before.append(stand(question, before))
    return before


@pytest.mark.parametrize(
    ("questions", "understood"),
    [
        (["For twins?", "For fathers?"], "How long is parental leave for fathers?"),
        (["for twins?", "in Seoul?"], "How long is parental leave for twins in Seoul?"),
        (
            ["for twins?", "in Seoul?", "for fathers?"],
            "How long is parental leave in Seoul for fathers?",
        ),
        (["for twins?", "Who pays rent?", "for guests?"], "Who pays rent for guests?"),
    ],
)
def test_a_fragment_of_the_same_kind_takes_the_place_of_the_one_before(
    questions: list[str], understood: str
) -> None:
    assert requests(LEAVE.base, *questions)[-1].text.casefold() == understood.casefold()


def test_a_particle_that_sounds_otherwise_is_the_same() -> None:
    *_, last = requests(휴직.base, "남편은?", "쌍둥이는?", "계약직은요?")
    assert last.text == "육아휴직 기간은 얼마인가요 계약직은요?"


@pytest.mark.parametrize(
    ("questions", "understood", "day"),
    [
        (
            ["2019년 기준 출산장려금은 얼마인가요?", "2020년에는요?"],
            "출산장려금은 얼마인가요 2020년에는요?",
            date(2020, 12, 31),
        ),
        (
            ["2019년 기준 출산장려금은 얼마인가요?", "2020년은요?", "쌍둥이는요?", "지금은요?"],
            "출산장려금은 얼마인가요 쌍둥이는요 지금은요?",
            date(2026, 11, 22),
        ),
        (
            ["출산장려금은 얼마인가요?", "2019년은요?", "쌍둥이는요?"],
            "출산장려금은 얼마인가요 2019년은요 쌍둥이는요?",
            date(2019, 12, 31),
        ),
        (
            ["2019년에 출산장려금은 얼마였나요?", "그럼 3년 전에는요?"],
            "출산장려금은 얼마였나요 3년 전에는요?",
            date(2023, 11, 22),
        ),
        (
            ["출산장려금은 얼마인가요?", "2019년 쌍둥이는요?", "2020년에는 얼마였나요?"],
            "출산장려금은 얼마인가요 쌍둥이는요 2020년에는 얼마였나요?",
            date(2020, 12, 31),
        ),
        (
            ["How long was the leave (as of 2019)?", "and in 2020?"],
            "How long was the leave in 2020?",
            date(2020, 12, 31),
        ),
        (
            ["What was the leave limit in 2019?", "in 2020?", "in Seoul?", "and now?"],
            "What was the leave limit in Seoul now?",
            date(2026, 11, 22),
        ),
        (
            ["What was the leave limit as of 2019?", "How much was it in 2020?"],
            "How much was it in 2020 leave limit?",
            date(2020, 12, 31),
        ),
        (
            ["2019년 기준 출산장려금은 얼마인가요?", "쌍둥이는요?"],
            "2019년 기준 출산장려금은 얼마인가요 쌍둥이는요?",
            date(2019, 12, 31),
        ),
    ],
)
def test_another_time_replaces_the_time_of_the_question_before(
    questions: list[str], understood: str, day: date
) -> None:
    today = date(2026, 11, 22)
    before: list[Standing] = []
    for question in questions:
        before.append(stand(question, before, today=today))
    assert before[-1].text == understood
    time = stated_time(understood, today)
    assert time
    assert time.day == day


@pytest.mark.parametrize(
    "fragment",
    [
        "And twins {}?",
        "Is that paid {}?",
        "Does it end {}?",
        "why {}?",
        "그 사람 {}?",
        "그럼 쌍둥이 {}",
    ],
)
def test_a_long_conversation_does_not_make_its_questions_longer(fragment: str) -> None:
    before = requests(LEAVE.base, *(fragment.format("abcdefgh"[n % 8] * 9) for n in range(100)))
    lengths = [len(standing.text) for standing in before]
    assert max(lengths) < 250
    assert max(lengths[50:]) <= max(lengths[:50])
    assert sum(map(len, before[-1].tails)) < 200


SOME = "and for it that twins what about is the ? . why IT if a their then 그럼 쌍둥이는 그것은 \n"
WORDS = st.lists(st.sampled_from(SOME.split(" ")) | st.text(max_size=5), min_size=1, max_size=12)


@settings(max_examples=200)
@given(st.lists(WORDS.map(" ".join), min_size=1, max_size=12))
def test_whatever_is_asked_a_question_comes_out_that_is_not_empty(questions: list[str]) -> None:
    before: list[Standing] = []
    for question in questions:
        standing = stand(question, before)
        assert bool(standing.text.strip()) == bool(question.strip()) or before
        if any(map(str.isalnum, question)):
            assert any(map(str.isalnum, standing.text))
            before.append(standing)
        longest = max(len(q) for q in questions)
        assert len(standing.text) <= 5 * longest + 20


@pytest.mark.parametrize("piece", ["a b ", "do cats ", "한", "is it ", "for ", "a", "?", "그 "])
def test_a_long_question_takes_no_time(piece: str) -> None:
    assert stand(piece * 2000, [LEAVE]).text
