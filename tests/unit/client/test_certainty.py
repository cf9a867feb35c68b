"""How sure an answer is, in words."""

import pytest

from callslip.vocabulary import RIGHT, SURE, certainty_of


@pytest.mark.parametrize(
    ("confidence", "approved", "word"),
    [
        (1.0, True, "sure"),
        (SURE, True, "sure"),
        (0.75, True, "probably"),
        (0.1, True, "probably"),
        (1.0, False, "not sure"),
        (0.0, False, "not sure"),
    ],
)
def test_a_confidence_has_a_word(confidence: float, approved: bool, word: str) -> None:
    assert certainty_of(confidence, approved=approved) == word
    assert (word in RIGHT) is approved
