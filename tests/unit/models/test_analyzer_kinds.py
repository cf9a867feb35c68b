"""The kinds of analyzers that a collection can choose."""

from collections.abc import Mapping
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callslip.models.text.analyzer import MAX_TERM, Analyzer, version_of
from callslip.models.text.kinds import analyzer_of, kind_of, of_kind, version_of_kind
from callslip.vocabulary import AnalyzerKind

PRESENT = Analyzer()
KINDS: tuple[AnalyzerKind, ...] = get_args(AnalyzerKind)

TERMS: Mapping[str, Mapping[str, str]] = {
    "Employees' leaves of 1,000 days": {
        "english": "employe leav of 1000 dai",
        "korean": "employees leaves of 1000 days",
        "words": "employees leaves of 1000 days",
        "bigrams": "em mp pl lo oy ye ee es le ea av ve es of 10 00 00 da ay ys",
    },
    "휴가는 Café에서": {
        "english": "휴가는 café에서",
        "words": "휴가는 café에서",
        "bigrams": "휴가 가는 ca af fé é에 에서",
    },
    "東京都 a": dict.fromkeys(("english", "korean", "words", "bigrams"), "東京 京都 a"),
    "?!": dict.fromkeys(("english", "korean", "words", "bigrams"), ""),
}


@pytest.mark.parametrize("text", TERMS)
def test_each_kind_makes_its_own_terms(text: str) -> None:
    for name, terms in TERMS[text].items():
        assert of_kind(kind_of(f"2:{name}"), PRESENT).analyze(text) == terms, name


def test_the_korean_kind_has_the_morphemes_of_the_default_one_and_no_english_stems() -> None:
    korean = of_kind("korean", PRESENT)
    assert korean.analyze("출산 장려금을 지급한다") == PRESENT.analyze("출산 장려금을 지급한다")
    assert korean.analyze("leaves는") == "leaves"


def test_a_collection_has_the_analyzer_that_its_record_names() -> None:
    assert version_of_kind((), "default") == version_of(()) == "2"
    assert version_of_kind(("de",), "english") == "2:english"
    for kind in KINDS:
        made = of_kind(kind, PRESENT)
        assert kind_of(made.version) == kind
        assert analyzer_of(made.version, PRESENT) is made
        assert made.codes == PRESENT.codes
    for version in ("2", "2+de", "1", "", "unknown", "2:nobody"):
        assert analyzer_of(version, PRESENT) is PRESENT


@given(st.text(max_size=200), st.sampled_from([k for k in KINDS if k not in ("default", "korean")]))
def test_no_term_of_any_text_is_too_long_or_has_a_blank(text: str, kind: AnalyzerKind) -> None:
    terms = of_kind(kind, PRESENT).analyze(text)
    assert all(len(term) <= MAX_TERM for term in terms.split(" "))
    assert " ".join(terms.split()) == terms
