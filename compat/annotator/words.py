"""The words of a text, as the TF-IDF of the Document Retriever counts them."""

import re
from functools import lru_cache

from models.analyzer import MAX_TERM, Analyzer
from models.language import FUNCTION_WORDS
from models.normal import normalized
from models.tokens import well_formed

STOP_WORDS = FUNCTION_WORDS | frozenset(
    re.findall(
        r"\S+",
        "above after again all also although because before being below between both but down"
        " during each every few further he her here hers herself him himself his itself just me"
        " mine more most myself neither nor off once only other ours ourselves out over own same"
        " she since so such theirs themselves though through too under until up upon very while"
        " yet yours yourself im ive id ill dont doesnt didnt isnt arent wasnt werent cant couldnt"
        " wont wouldnt shouldnt youre youve theyre weve let",
    )
)
"""Words that are left out, without their apostrophes and what a possessive adds."""

_APOSTROPHES = re.compile(r"(?<=\w)['’](?:s\b)?")
_WORD = re.compile(r"[^\W_]+")
_analyzer = Analyzer()


def words(text: str, *, stop_words: bool, stems: bool) -> str:
    """The words, separated by spaces, in lower case; those to be left out are not there.

    Words in Hangul, Han, kana and Thai are the analyzer's terms, for particles are written on to
    them or no space between them. With `stems` those of other scripts are, too.
    """
    normal = normalized("NFKC", well_formed(text)).lower()
    found = _WORD.findall(_APOSTROPHES.sub("", normal))
    if stop_words:
        found = [word for word in found if word not in STOP_WORDS]
    if stems:
        return _analyzer.analyze(" ".join(found))
    return " ".join(word[:MAX_TERM] if _stands_alone(word) else _terms(word) for word in found)


def _stands_alone(word: str) -> bool:
    return word.isascii() or max(word) < "\u0e00"


@lru_cache(maxsize=10_000)
def _terms(word: str) -> str:
    return _analyzer.analyze(word)
