"""One spelling of a Korean phrase before it is embedded, and the compounds of a corpus."""

import pytest

from benchmarks.quality.spacing import Compound, compounds
from callslip.languages.ko.spelling import LONGEST
from callslip.retrieval.query.spacing import to_embed


@pytest.mark.parametrize("compound", ["출산장려금", "육아휴직급여", "개인정보보호위원회"])
def test_both_spellings_of_a_phrase_are_embedded_alike(compound: str) -> None:
    spaced = to_embed(compound)
    assert spaced.replace(" ", "") == compound
    assert to_embed(spaced) == spaced
    assert to_embed(f" {compound[:2]} {compound[2:]} ") == spaced


@pytest.mark.parametrize(
    "query",
    [
        "parental leave",
        "제12조 신고",
        "육아휴직 급여는?",
        "가" * (LONGEST + 1),
        "개인정보  보호",
        "",
    ],
)
def test_anything_else_is_embedded_as_it_was_asked(query: str) -> None:
    assert to_embed(f" {query} ") == query


def test_the_commonest_compounds_of_texts_are_given_in_both_spellings() -> None:
    found = compounds(["육아휴직을 신청한다. 육아휴직은 길다.", "산업재해 신고"], 2)
    assert found == [Compound("육아휴직", "육아 휴직"), Compound("산업재해", "산업 재해")]
