"""Unicode normalization that hostile text cannot slow down."""

import re
import unicodedata
from typing import Literal

MOST_MARKS = 30
"""The most combining marks in a row, as in the Stream-Safe Text Format (UAX #15, 12)."""

_MARKS = "".join(
    re.escape(mark) for mark in map(chr, range(0x300, 0x1F000)) if unicodedata.combining(mark)
)
_ANY_MARK = re.compile(f"[{_MARKS}]")
_IN_QUESTIONS = str.maketrans("０１２３４５６７８９", "0123456789")
_TOO_MANY = re.compile(f"([{_MARKS}]{{{MOST_MARKS}}})[{_MARKS}]+")


def normalized(form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str) -> str:
    """Return the text in a normal form, in linear time; drop marks beyond `MOST_MARKS` in a row.

    Sorting n marks in a row takes n² steps, during which no other thread runs.
    """
    if text.isascii():
        return text
    if _ANY_MARK.search(text[:: MOST_MARKS + 1]):  # every row that is too long has one of these
        text = _TOO_MANY.sub(r"\1", text)
    return unicodedata.normalize(form, text)


def normal_question(text: str) -> str:
    """Return a question in NFC, with ASCII digits for full-width ones."""
    return normalized("NFC", text).translate(_IN_QUESTIONS)
