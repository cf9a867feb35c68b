"""Normal forms: the same as Unicode's, but for marks that no letter has."""

import time
import unicodedata
from collections.abc import Callable
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callslip.models.text.normalization import MOST_MARKS, normal_question, normalized


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


@given(st.integers(0, 70), st.integers(0, 70), st.sampled_from(["\u0300", "\u0316\u0300"]))
def test_marks_are_cut_wherever_they_stand(before: int, times: int, marks: str) -> None:
    row = (marks * 70)[:times]
    text = f"{'한' * before}a{row}b"
    expected = f"{'한' * before}a{row[:MOST_MARKS]}b"
    assert normalized("NFD", text) == unicodedata.normalize("NFD", expected)


def test_most_texts_are_not_read_mark_by_mark() -> None:
    text = "출산 장려금은 한 번에 지급한다. " * 20_000

    def seconds(form: Callable[[Literal["NFC"], str], str]) -> float:
        started = time.process_time()
        form("NFC", text)
        return time.process_time() - started

    alone = min(seconds(unicodedata.normalize) for _ in range(5))
    assert min(seconds(normalized) for _ in range(5)) < 60 * alone


def test_a_question_is_composed_and_has_plain_digits() -> None:
    question = "제１２조, ２０１９년 기준 출산장려금은 얼마인가요? Café Ⅳ"
    expected = "제12조, 2019년 기준 출산장려금은 얼마인가요? Café Ⅳ"
    assert normal_question(unicodedata.normalize("NFD", question)) == expected
    assert normal_question(expected) == expected
