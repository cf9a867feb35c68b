"""Normal forms: the same as Unicode's, but for marks that no letter has."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callslip.models.text.normalization import MOST_MARKS, normalized


@given(st.text(), st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"]))
def test_a_text_has_its_normal_form(text: str, form: str) -> None:
    assert normalized(form, text) == unicodedata.normalize(form, text)  # type: ignore[arg-type]


@pytest.mark.parametrize("marks", ["\u0300\u0316", "\u0316\u0300", "\u3099", "\U0001d167"])
def test_marks_without_end_are_cut(marks: str) -> None:
    text = f"a{marks * 250_000}b"
    assert normalized("NFKC", text) == unicodedata.normalize(
        "NFKC", f"a{(marks * MOST_MARKS)[:MOST_MARKS]}b"
    )


def test_thirty_marks_are_kept() -> None:
    text = "a" + "\u0316" * MOST_MARKS
    assert normalized("NFD", text) == text
