"""The words of a text as the Document Retriever's TF-IDF counts words."""

import re
from functools import lru_cache

from callslip.languages import function_words
from callslip.models.e5.tokens import well_formed
from callslip.models.text.analyzer import MAX_TERM, Analyzer
from callslip.models.text.normalization import normalized

STOP_WORDS = function_words() | frozenset(
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
"""The stop words without apostrophes and without the ending `'s`, which `words` removes first."""

_APOSTROPHES = re.compile(r"(?<=\w)['’](?:s\b)?")
_WORD = re.compile(r"[^\W_]+")
_analyzer = Analyzer()


def words(text: str, *, stop_words: bool, stems: bool, alphas_only: bool = False) -> str:
    """Return the words in lower case, separated by spaces; `stop_words` removes stop words.

    `alphas_only` removes words with anything but letters.

    Words in Hangul, Han, kana and Thai become the analyzer's terms, because these scripts attach
    particles to words or write no spaces. With `stems`, words of other scripts also become terms.
    """
    normal = normalized("NFKC", well_formed(text)).lower()
    tokens = _WORD.findall(_APOSTROPHES.sub("", normal))
    if alphas_only:
        tokens = [word for word in tokens if word.isalpha()]
    if stop_words:
        tokens = [word for word in tokens if word not in STOP_WORDS]
    if stems:
        return _analyzer.analyze(" ".join(tokens))
    return " ".join(word[:MAX_TERM] if _stands_alone(word) else _terms(word) for word in tokens)


def _stands_alone(word: str) -> bool:
    return word.isascii() or max(word) < "\u0e00"


@lru_cache(maxsize=10_000)
def _terms(word: str) -> str:
    return _analyzer.analyze(word)
