"""The form of a text whose words are indexed, and where its characters are in the text."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from callslip.languages import DEFAULT, languages
from callslip.languages.contract import Language
from callslip.models.e5.tokens import well_formed
from callslip.models.text.normalization import normalized

_THOUSANDS = r"(?<=\d),(?=\d{3}(?!\d))"
"""The comma between thousands."""


@dataclass(frozen=True)
class Located:
    """The indexed form of a text; character n is of `original[starts[n] : ends[n]]`."""

    text: str
    starts: Sequence[int]
    ends: Sequence[int]


def lower_form(text: str) -> str:
    """Return the text in normal form and lower case."""
    return normalized("NFKC", well_formed(text)).lower()


def ignored_in(some: Sequence[Language]) -> re.Pattern[str]:
    """Return the pattern of what is left out of texts: the forms that these languages ignore."""
    return re.compile("|".join((_THOUSANDS, *(form for one in some for form in one.terms.ignored))))


@cache
def ignored() -> re.Pattern[str]:
    """Return the pattern of what the default analyzer leaves out."""
    return ignored_in(languages(DEFAULT))


def located(original: str) -> Located | None:
    """Return the form that the default analyzer reads, with the place of each character.

    Returns None if characters do not have normal forms of their own, as a letter and its accent,
    or if the normal form makes other letters: of `㎡`, or of `ㆍ`, the dot of Korean laws, which it
    makes a vowel. There Kiwi would find other words than in the text.
    """
    sound = well_formed(original)
    normal = normalized("NFKC", sound)
    text = normal.lower()
    starts: Sequence[int] = range(len(original))
    ends: Sequence[int] = range(1, len(original) + 1)
    # Lower case never shortens a text, so that of an equal length replaces each character by one.
    if normal != sound or len(text) != len(sound):
        form_of = {character: lower_form(character) for character in set(sound)}
        forms = [form_of[character] for character in sound]
        if "".join(forms) != text or any(map(_makes_letters, form_of, form_of.values())):
            return None
        starts = [n for n, form in enumerate(forms) for _ in form]
        ends = [n + 1 for n in starts]
    spans = list(_between(ignored(), text))
    if len(spans) > 1:
        starts = [n for start, end in spans for n in starts[start:end]]
        ends = [n for start, end in spans for n in ends[start:end]]
    return Located("".join(text[start:end] for start, end in spans), starts, ends)


def _makes_letters(character: str, form: str) -> bool:
    return form != character.lower() and any(map(str.isalpha, form))


def _between(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    at = 0
    for match in pattern.finditer(text):
        yield at, match.start()
        at = match.end()
    yield at, len(text)
