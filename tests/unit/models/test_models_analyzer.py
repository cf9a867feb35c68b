"""The text analyzer: what meets and what is bounded."""

import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callslip.models.text.analyzer import MAX_TERM, Analyzer
from callslip.models.text.language import lang

MEGABYTE = 1_000_000


@pytest.fixture(scope="module")
def analyzer() -> Analyzer:
    return Analyzer()


def terms(analyzer: Analyzer, text: str) -> list[str]:
    return sorted(analyzer.analyze(text).split(" "))


@pytest.mark.parametrize(
    ("spaced", "joined"),
    [
        ("출산 장려금", "출산장려금"),
        ("육아 휴직 급여", "육아휴직급여"),
        ("기초 생활 수급자", "기초생활수급자"),
        ("전세 보증금 반환 보증", "전세보증금반환보증"),
    ],
)
def test_a_korean_compound_gives_the_same_terms_with_and_without_spaces(
    analyzer: Analyzer, spaced: str, joined: str
) -> None:
    assert terms(analyzer, spaced) == terms(analyzer, joined)


def test_the_parts_of_a_long_name_are_found_in_it(analyzer: Analyzer) -> None:
    name = terms(analyzer, "국민건강보험공단")
    assert set(terms(analyzer, "건강보험")) <= set(name)
    assert set(terms(analyzer, "국민 건강 보험 공단")) <= set(name)


def test_korean_particles_and_endings_leave_no_term(analyzer: Analyzer) -> None:
    assert terms(analyzer, "장려금을 지급하였습니다") == terms(analyzer, "장려금의 지급")


def test_english_words_meet_their_other_forms(analyzer: Analyzer) -> None:
    assert terms(analyzer, "Libraries, indexing") == terms(analyzer, "library indexed")
    assert terms(analyzer, "the reader's class S") == terms(analyzer, "the reader class s")


def test_accents_width_and_case_do_not_matter(analyzer: Analyzer) -> None:
    assert terms(analyzer, "CAFÉ Ａ４") == terms(analyzer, "cafe a4")


def test_amounts_meet_with_and_without_separators(analyzer: Analyzer) -> None:
    assert terms(analyzer, "1,000,000원") == terms(analyzer, "1000000 원")


def test_latin_and_digits_within_korean_are_terms_of_their_own(analyzer: Analyzer) -> None:
    assert {"gpt", "모델", "30", "만", "원"} <= set(terms(analyzer, "GPT모델은 30만원이다"))


def test_han_and_kana_give_pairs(analyzer: Analyzer) -> None:
    assert terms(analyzer, "東京タワー") == sorted(["東京", "京タ", "タワ", "ワー"])
    assert terms(analyzer, "漢") == ["漢"]


def test_text_without_letters_gives_no_terms(analyzer: Analyzer) -> None:
    for text in ("", "  \n", "?!… —", "_"):
        assert analyzer.analyze(text) == ""


def test_a_word_of_a_megabyte_is_one_short_term(analyzer: Analyzer) -> None:
    assert analyzer.analyze("Zz9" * (MEGABYTE // 3)) == ("zz9" * MAX_TERM)[:MAX_TERM]


def test_long_korean_text_without_spaces_is_read_to_its_end(analyzer: Analyzer) -> None:
    assert "도서관" in analyzer.analyze("출산장려금" * 5000 + "\n도서관")


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters() | st.sampled_from("가나한글ㅋᆫ漢カ 1,s\u0301\ud800"), max_size=80))
def test_terms_can_be_stored_and_are_the_same_each_time(analyzer: Analyzer, text: str) -> None:
    analyzed = analyzer.analyze(text)
    assert analyzed == analyzer.analyze(text)
    analyzed.encode()
    assert analyzed == " ".join(analyzed.split())
    assert all(len(term) <= MAX_TERM for term in analyzed.split())


def test_threads_share_an_analyzer(analyzer: Analyzer) -> None:
    texts = ["출산장려금을 신청하는 방법", "libraries indexing papers", "GPT모델과 漢字"] * 20
    expected = [analyzer.analyze(text) for text in texts]
    results: list[list[str]] = []
    threads = [
        threading.Thread(target=lambda: results.append([analyzer.analyze(t) for t in texts]))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 4


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("출산장려금을 신청하는 방법", "ko"),
        ("GPT-4 API의 response_format 설정 방법", "ko"),
        ("How to apply for the benefit", "en"),
        ("The word 장려금 means a grant that a city pays to parents of newborn children", "en"),
        ("東京タワー", ""),
        ("2024-01-05", ""),
        ("", ""),
    ],
)
def test_the_language_is_told_by_script(text: str, language: str) -> None:
    assert lang(text) == language


@pytest.mark.parametrize(
    ("written", "term"),
    [
        ("제12조", "12조"),
        ("제 12 조의 2", "12조의2"),
        ("제55조의7제1항", "55조의7"),
        ("100만원 이하", "1000000"),
        ("1,000,000원", "1000000"),
        ("1억 2,000만 원", "120000000"),
        ("1만 5,000원", "15000"),
        ("2조 3천억원", "2300000000000"),
        ("1.5억원", "150000000"),
    ],
)
def test_an_article_and_an_amount_are_one_term(analyzer: Analyzer, written: str, term: str) -> None:
    assert term in terms(analyzer, written)


def test_a_number_and_its_unit_meet_with_and_without_a_space(analyzer: Analyzer) -> None:
    assert terms(analyzer, "3개월") == terms(analyzer, "3 개월")
    assert terms(analyzer, "만 18세 이상") == terms(analyzer, "만 18 세 이상")


def test_han_latin_and_hangul_in_one_word_are_found_apart(analyzer: Analyzer) -> None:
    assert set(terms(analyzer, "RFC 문서")) <= set(terms(analyzer, "RFC문서를"))
    assert set(terms(analyzer, "保證金")) <= set(terms(analyzer, "保證金의 회수"))


def test_one_wrong_vowel_leaves_most_of_a_compound_to_meet(analyzer: Analyzer) -> None:
    right, wrong = (set(terms(analyzer, word)) for word in ("육아휴직급여신청", "육아휴작급여신청"))
    assert len(right & wrong) >= len(right) / 2
