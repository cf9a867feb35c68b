"""How sure an answer is, in words."""

import pytest

from callslip.vocabulary import MEASURED, SURE, certainty_of, share_right


@pytest.mark.parametrize(
    ("confidence", "approved", "word", "share"),
    [
        (1.0, True, "sure", "9 of 10"),
        (SURE, True, "sure", "9 of 10"),
        (MEASURED, True, "probably", "6 of 10"),
        (0.1, True, "probably", ""),
        (1.0, False, "not sure", ""),
        (0.0, False, "not sure", ""),
    ],
)
def test_a_confidence_has_a_word(confidence: float, approved: bool, word: str, share: str) -> None:
    assert certainty_of(confidence, approved=approved) == word
    words = share_right(confidence, approved=approved, by_model=False)
    assert words == (f"about {share} such answers were right" if share else "")
    assert not share_right(confidence, approved=approved, by_model=True)
