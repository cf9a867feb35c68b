"""The spelling of a question's words: the one that more of the collection's passages have.

`email` and `e-mail`, `corona virus` and `coronavirus`, `3months` and `3 months` are the same words,
but the analyzer gives them different terms. If more than `MORE` times as many passages of the
sample have the other spelling as the question's own, the question gets it: two words become one, or
one becomes two. Stored terms stay as they are. docs/quality.md has the measured effect.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from callslip.languages import function_words
from callslip.retrieval.candidates.calibration import ScoreCalibration

SHORTEST = 4
"""The minimum number of characters of a word that is divided or made of two."""

LONGEST = 40
"""The maximum number of characters of a word that is divided."""

MORE = 3
"""So many times as frequent is the other spelling of a word that the sample has: `overtime` and
`over time` are both right."""

_WORD = re.compile(r"(?<!\w)[A-Za-z0-9]+(?!\w)")
_GAPS = (" ", "-", "\u2010", "\u2011")
_AMOUNT = re.compile(r"(\d+)([A-Za-z]+)")


@dataclass(frozen=True)
class Spelling:
    """The spelling of a sample of passages; `analyze` makes the terms of a text."""

    sample: ScoreCalibration
    analyze: Callable[[str], str]

    def of(self, question: str) -> str:
        """Return the question with its English words in the spelling of the sample."""
        return _WORD.sub(lambda word: self._divided(word[0]), self._joined(question))

    def _joined(self, text: str) -> str:
        """Return the text with two words joined wherever the sample rather has one."""
        made, end, last = [], 0, 0
        for first, second in pairwise(_WORD.finditer(text)):
            gap = text[first.end() : second.start()]
            if first.start() >= last and self._is_one(first[0], gap, second[0]):
                made.append(text[end : first.end()])
                end, last = second.start(), second.end()
        return "".join((*made, text[end:]))

    def _is_one(self, first: str, gap: str, second: str) -> bool:
        """Whether two words are one; a space divides more than a hyphen does."""
        word = first + second
        if len(word) < SHORTEST or word.isdigit():
            return False
        if gap not in _GAPS or (gap == " " and (_is_bound(first) or _is_bound(second))):
            return False
        known = self._passages(word)
        return known > 0 and known > MORE * self._in_a_row(first, second, 0)

    def _divided(self, word: str) -> str:
        """Return a word as the two words that the sample rather has in a row, or as it is."""
        if not SHORTEST <= len(word) <= LONGEST or _is_function(word):
            return word
        known = self._passages(word)
        if not known and (amount := _AMOUNT.fullmatch(word)) and self._is_unit(amount[2]):
            return f"{amount[1]} {amount[2]}"
        cuts = ((word[:at], word[at:]) for at in range(1, len(word) - 1))
        counts = {
            cut: self._in_a_row(*cut, MORE * known) for cut in cuts if not _is_function(cut[0])
        }
        best = max(counts, key=counts.__getitem__, default=("", ""))
        return " ".join(best) if counts.get(best, 0) > MORE * known else word

    def _is_unit(self, word: str) -> bool:
        """Whether a word behind a number may be a unit: no letter, as in `401k`."""
        return not _is_letter(word) and self._passages(word) > 0

    def _passages(self, word: str) -> int:
        """Return how many passages of the sample have the word."""
        return self.sample.frequencies.get(self.analyze(word), 0)

    def _in_a_row(self, first: str, second: str, least: int) -> int:
        """Return how many passages of the sample have the two words in a row.

        The result is 0 if no more than `least` have them: then the passages are not read.
        """
        end, counts = self.analyze(second), self.sample.frequencies
        if _is_letter(end) or counts.get(end, 0) <= least:
            return 0
        start = self.analyze(first)
        if counts.get(start, 0) <= least:
            return 0
        pair = f" {start} {end} "
        return sum(pair in terms for terms in self.sample.terms)


def _is_bound(word: str) -> bool:
    """Whether a word is no part of another one: a function word or a letter."""
    return _is_function(word) or _is_letter(word)


def _is_letter(word: str) -> bool:
    return len(word) == 1 and word.isalpha()


def _is_function(word: str) -> bool:
    return word.lower() in function_words()
