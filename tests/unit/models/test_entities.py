"""Entities of English and Korean text, days among them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.quality.entities import measure, read
from callslip.languages.ko.morphemes import MORPHEMES, Morphemes
from callslip.models.entities import Recognizer
from callslip.models.entities.dates import days
from callslip.models.entities.entity import Entity, settle
from callslip.models.text.analyzer import Analyzer

LEAST = {"en": (0.93, 0.91), "ko": (0.90, 0.91)}
"""Precision and recall that the labelled passages must reach; docs/quality.md has the figures."""


RECOGNIZER = Recognizer()


@pytest.fixture
def recognizer() -> Recognizer:
    """One for all, as its models take seconds to load."""
    return RECOGNIZER


def names(recognizer: Recognizer, text: str) -> set[tuple[str, str]]:
    return {(e.name, e.kind) for e in next(recognizer.find([text]))}


@pytest.mark.long
@pytest.mark.parametrize("lang", LEAST)
def test_entities_of_the_labelled_passages_are_found(recognizer: Recognizer, lang: str) -> None:
    passages = read(lang)
    assert len(passages) == 100
    score = measure(passages, recognizer)["all"]
    precision, recall = LEAST[lang]
    assert score.precision >= precision
    assert score.recall >= recall


def test_an_entity_is_what_stands_in_the_text_without_its_article(recognizer: Recognizer) -> None:
    text = "The Department of Health's circular; see the Housing Act 1996, RFC 2119 (1 May 2020)."
    found = next(recognizer.find([text]))
    assert [e.name for e in found] == [
        *("Department of Health", "Housing Act 1996", "RFC 2119", "2020-05-01")
    ]
    assert [text[e.start : e.end] for e in found if e.kind != "date"] == [
        e.name for e in found if e.kind != "date"
    ]


def test_korean_laws_are_found_by_brackets_by_their_title_and_by_their_article(
    recognizer: Recognizer,
) -> None:
    text = (
        "「주택임대차보호법」에 따른다. 사업주는 남녀고용평등과 일·가정 양립 지원에 관한 법률을"
        " 지킨다. 고용보험법 시행령도 같다. 요리 방법과 조리법은 법이 아니다."
    )
    laws = {name for name, kind in names(recognizer, text) if kind == "law"}
    assert laws == {
        "주택임대차보호법",
        "남녀고용평등과 일·가정 양립 지원에 관한 법률",
        "고용보험법 시행령",
    }


def test_common_nouns_are_no_bodies_and_no_programmes(recognizer: Recognizer) -> None:
    assert names(recognizer, "관할 주민센터와 병원, 시중은행은 무급휴가 제도를 운영한다.") == set()


def test_english_within_korean_and_korean_within_english_are_found(recognizer: Recognizer) -> None:
    assert ("OECD", "organisation") in names(recognizer, "정부는 OECD 통계를 발표하였다.")
    english = "The birth grant (출산장려금) is paid by the National Pension Service in full."
    assert ("출산장려금", "programme") in names(recognizer, english)


@pytest.mark.parametrize("text", ["", " \n", "12345", "日本語だけの文章です。", "\U0001f600" * 50])
def test_text_without_names_has_none(recognizer: Recognizer, text: str) -> None:
    assert list(recognizer.find([text])) == [[]]


@pytest.mark.long
@pytest.mark.parametrize("text", ["가" * 20_000, "자동차" * 3000, "A " * 5000, "Act of " * 2000])
def test_awkward_text_takes_no_time(recognizer: Recognizer, text: str) -> None:
    list(recognizer.find([text]))


@pytest.mark.parametrize("name", ["GS리테일", "CJ제일제당", "국민건강보험공단"])
def test_a_name_is_where_the_text_has_it(recognizer: Recognizer, name: str) -> None:
    text = f"보증금 1,000,000원과 12㎡를 ＡＳ로 내는 곳은 {name}이다."
    spans = [(e.start, e.end) for e in next(recognizer.find([text])) if e.kind != "date"]
    assert (text.index(name), text.index(name) + len(name)) in spans


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("고용노동부ㆍ보건복지부에서 정한다.", {"고용노동부", "보건복지부"}),
        ("행정안전부ㆍ국토교통부ㆍ환경부 장관", {"행정안전부", "국토교통부", "환경부"}),
        ("근로기준법ㆍ최저임금법을 위반한 자", {"근로기준법", "최저임금법"}),
        ("출산장려금ㆍ아동수당을 지급한다.", {"출산장려금", "아동수당"}),
        ("서울특별시ㆍ경기도에 있는 12㎡ 이하", {"서울특별시", "경기도"}),
        ("고용노동부\ud800 보건복지부 e\u0301", {"고용노동부", "보건복지부"}),
        ("제1조ㆍ제2조에 따라", set()),
    ],
)
def test_marks_between_names_are_no_part_of_them(
    recognizer: Recognizer, text: str, expected: set[str]
) -> None:
    assert {name for name, kind in names(recognizer, text) if kind != "date"} == expected


def test_names_and_terms_are_made_from_one_analysis(monkeypatch: pytest.MonkeyPatch) -> None:
    morphemes, read = Morphemes(), []
    tokenize = morphemes._kiwi.tokenize
    monkeypatch.setattr(morphemes._kiwi, "tokenize", lambda t: read.append(t) or tokenize(t))
    monkeypatch.setattr(MORPHEMES, "get", lambda: morphemes)
    texts = [f"제{n}조 신청은 시청에 한다. API로 1,{n}00원을 낸다." for n in range(40)]
    analyzer = Analyzer()
    for text, _ in zip(texts, Recognizer().find(texts), strict=True):
        analyzer.analyze(text)
    assert len(read) == len(texts)


@given(st.text(max_size=200))
@settings(deadline=None, max_examples=50)
def test_spans_lie_within_the_text_and_never_over_each_other(text: str) -> None:
    ends = [0]
    for entity in next(RECOGNIZER.find([text])):
        assert ends[-1] <= entity.start < entity.end <= len(text)
        ends.append(entity.end)


def test_of_finds_that_overlap_the_first_argument_wins_and_then_the_longer() -> None:
    spans = {"long": (0, 9), "short": (2, 4), "other": (8, 12)}
    long, short, other = (Entity(name, "name", *span) for name, span in spans.items())
    assert settle([short, long]) == [long]
    assert settle([short], [long, other]) == [short, other]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-01-31", "2024-01-31"),
        ("2024. 1. 31.", "2024-01-31"),
        ("2024.01.31", "2024-01-31"),
        ("2024/1/31", "2024-01-31"),
        ("2024년 1월 31일", "2024-01-31"),
        ("’24.1.31.", "2024-01-31"),
        ("31 January 2024", "2024-01-31"),
        ("the 1st day of March 2021", "2021-03-01"),
        ("Jan. 31, 2024", "2024-01-31"),
        ("May 4th, 2020", "2020-05-04"),
        ("03/04/2024", None),
        ("2024-13-01", None),
        ("2024. 2. 30.", None),
        ("1.2.3.4", None),
        ("제2024-1234호", None),
        ("v2024.1.1", None),
        ("2024-01-311", None),
    ],
)
def test_days_are_read_as_they_are_written(text: str, expected: str | None) -> None:
    assert [d.day.isoformat() for d in days(f"x {text} y")] == ([expected] if expected else [])
