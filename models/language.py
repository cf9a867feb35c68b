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
