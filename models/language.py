"""The language of a text, by the share of each script in its letters."""

import re

HANGUL = "\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff\uffa1-\uffdc"
"""Syllables and jamo, as the inside of a character class of `re`."""

_HANGUL = re.compile(f"[{HANGUL}]")
_LATIN = re.compile("[A-Za-z\u00c0-\u024f]")
_LETTER = re.compile(r"[^\W\d_]")

KOREAN_SHARE = 0.2
"""Hangul of so much of the letters is Korean: Korean prose quotes Latin terms, not the reverse."""
LATIN_SHARE = 0.5


def lang(text: str) -> str:
    """`ko`, `en`, or empty where the script tells neither. Latin script counts as English."""
    letters = len(_LETTER.findall(text))
    if not letters:
        return ""
    if len(_HANGUL.findall(text)) >= KOREAN_SHARE * letters:
        return "ko"
    return "en" if len(_LATIN.findall(text)) > LATIN_SHARE * letters else ""


FUNCTION_WORDS = frozenset(
    re.findall(
        r"\S+",
        "a about am an and any are as at be been by can could did do does doing for from had has"
        " have how i if in into is it its many may me might much must my no not of on or our shall"
        " should so some than that the their them then there these they this those to us was we"
        " were what when where which who whom whose why will with would you your"
        " 무엇 뭐 무슨 어느 어떤 어떻 어디 언제 누구 누가 얼마 얼마나 몇 왜 되 하 있 없 것 수 등",
    )
)
"""Words, and Korean stems, of which a question has many and that say nothing of its topic."""
