"""The indexed form of a text, and where its characters are in the text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callslip.models.text.index_form import ignored, located, lower_form


@pytest.mark.parametrize(
    ("text", "form", "originals"),
    [
        ("B 시청", "b 시청", "B| |시|청"),
        ("1,000원", "1000원", "1|0|0|0|원"),
        ("Kim's ① ½", "kim 1 1⁄2", "K|i|m| |①| |½|½|½"),
        ("１\u00a0시", "1 시", "１|\u00a0|시"),
        ("", "", ""),
    ],
)
def test_each_character_is_of_a_span_of_the_text(text: str, form: str, originals: str) -> None:
    found = located(text)
    assert found is not None
    assert found.text == form
    spans = zip(found.starts, found.ends, strict=True)
    assert "|".join(text[start:end] for start, end in spans) == originals


@pytest.mark.parametrize(
    "text", ["cafe\u0301", "3㎡", "고용노동부ㆍ보건복지부", "ㅋㅋ", "ＡＢ", "İ시q" + "\u0301" * 31]
)
def test_where_the_form_has_other_letters_there_is_none(text: str) -> None:
    assert located(text) is None


@given(st.text(alphabet=st.sampled_from("aA1,0’s 시청㎡ﬁ\u0301İ\ud800"), max_size=30))
def test_it_is_what_the_analyzer_reads(text: str) -> None:
    found = located(text)
    if found is None:
        return
    assert found.text == ignored().sub("", lower_form(text))
    assert list(found.starts) == sorted(found.starts)
    assert len(found.starts) == len(found.ends) == len(found.text)
    for character, start, end in zip(found.text, found.starts, found.ends, strict=True):
        assert character in lower_form(text[start:end])
