"""One spelling of a Korean phrase before it is embedded: 출산장려금 and 출산 장려금 are one."""

import re

from models.morphemes import MORPHEMES

LONGEST = 16
"""Syllables of a phrase. A question is embedded as it was asked: spaced anew, ko_autorag's lose
.010 nDCG@10."""

_PHRASE = re.compile(r"[가-힣]+(?: [가-힣]+)*")


def to_embed(query: str) -> str:
    """The query without outer white space; a short one of Hangul alone is spaced as Kiwi does it.

    The keyword leg needs no such thing: the analyzer gives both spellings the same terms.
    """
    text = query.strip()
    if not _PHRASE.fullmatch(text) or len(text.replace(" ", "")) > LONGEST:
        return text
    return MORPHEMES.get().spaced(text)
