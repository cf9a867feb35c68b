"""Detection of a text's language from the scripts of its letters and from function words."""

import re
from collections.abc import Sequence
from functools import cache

from callslip.languages import DEFAULT, Codes, languages
from callslip.languages.contract import Language

_LETTER = re.compile(r"[^\W\d_]")
_WORD = re.compile(r"[^\W\d_]+")

LONGEST = 4_000
"""The number of characters at the beginning of a text in which function words are counted."""


def lang(text: str, codes: Codes = DEFAULT) -> str:
    """Return the language's code, such as `ko` or `en`; empty if the script does not determine it.

    A text in Latin script has the language whose function words are most frequent in it, or the
    first language of `codes` in this script if there are no function words. With the default
    languages Latin script always counts as English.
    """
    letters = len(_LETTER.findall(text))
    if not letters:
        return ""
    own, shared = _by_script(codes)
    for language in own:
        if _count(language, text) >= language.script.share * letters:
            return language.code
    if not shared:
        return ""
    first = shared[0]
    if _count(first, text) <= first.script.share * letters:
        return ""
    return first.code if len(shared) == 1 else _most_words(text, shared) or first.code


def differ(one: str, other: str, codes: Codes = DEFAULT) -> bool:
    """Whether two texts are evidently in different languages.

    A text in a shared script needs a function word: a command or a name is of no language.
    """
    first, second = lang(one, codes), lang(other, codes)
    pairs = ((first, one), (second, other))
    if first == second or not first or not second:
        return False
    shared = [each for each in languages(codes) if each.script.shared]
    latin = {each.code for each in shared}
    evident = (code not in latin or _most_words(text, shared) for code, text in pairs)
    return all(evident)


def stems_of(text: str, codes: Codes) -> tuple[Language, ...]:
    """Return the languages whose stems apply to a text; all with stems if none is evident."""
    stemming = [one for one in languages(codes) if one.terms.stem]
    if len(stemming) == 1:
        return tuple(stemming)
    chosen = _most_words(text, stemming)
    return tuple(one for one in stemming if chosen in ("", one.code))


def _most_words(text: str, among: Sequence[Language]) -> str:
    """Return the code of the language with most function words in the text; the first of equals.

    Empty if the text has no function words.
    """
    words = _WORD.findall(text[:LONGEST].lower())
    counts = {one.code: sum(word in one.function_words for word in words) for one in among}
    best = max(counts, key=lambda code: counts[code])
    return best if counts[best] else ""


@cache
def _by_script(codes: Codes) -> tuple[list[Language], list[Language]]:
    """Return the languages with a script of their own, and the languages in Latin script."""
    chosen = languages(codes)
    return (
        [one for one in chosen if not one.script.shared],
        [one for one in chosen if one.script.shared],
    )


def _count(language: Language, text: str) -> int:
    return len(_letter(language.script.letters).findall(text))


@cache
def _letter(letters: str) -> re.Pattern[str]:
    return re.compile(f"[{letters}]")
