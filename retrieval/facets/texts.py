"""Makes the texts that describe a facet value: label, typed description, aliases, sentences."""

import re
from collections.abc import Iterable, Mapping, Sequence

from callslip.languages.ko.morphemes import spacings
from callslip.models.text.language import lang
from callslip.stores.records import Scalar

SECTION = "section"
"""The facet whose values are paths of headings."""

SHORTEST, LONGEST = 20, 300
"""The minimum and maximum number of characters of a sentence that describes a value."""

MOST_ALIASES = 16

_NAMES = {
    "doc_type": ("kind of document", "문서 종류"),
    "section": ("section", "조항"),
    "jurisdiction": ("jurisdiction", "관할 국가"),
    "lang": ("language", "언어"),
}
_COPY = re.compile(r"#\d+$")
_NUMBER = re.compile(
    r"(?:제\s?\d+\s?(?:편|장|절|관|조|항|호)(?:의\s?\d+)?|[\d.]+\.?(?=\s)|[ivxlc]+\.(?=\s)|[a-z]\.(?=\s)"
    r"|(?:section|article|chapter|part|appendix)\s+[\da-z.]+\b[.:]?)\s*"
)
_SENTENCE = re.compile(r"(?<=[.!?。])\s+|\n+")


def label(facet: str, value: Scalar) -> str:
    """The facet value that a chunk's property belongs to; empty if it belongs to none.

    For `section`, a path of headings, the value is the last heading without its number.
    So 제2조(정의) of one act and 제3조(정의) of another are one value, and so are
    `3 Definitions` and `1.2 Definitions`.
    """
    if isinstance(value, bool):
        return str(value).lower()
    text = " ".join(str(value).split())
    if facet != SECTION:
        return text
    last = _COPY.sub("", text).rpartition("/")[2].strip()
    name = last[number.end() :] if (number := _NUMBER.match(last)) else last
    if name.startswith("(") and name.endswith(")"):
        name = name[1:-1]
    return name.strip() or last


def describe(facet: str, value: str) -> str:
    """A sentence that describes the value, in the language of the value."""
    english, korean = _NAMES.get(facet, (facet.replace("_", " "), facet.replace("_", " ")))
    if lang(value) == "ko":
        return f"{korean}: {value}. 이것은 {value}에 관한 내용이다."
    return f"{english}: {value}. This is about {value.replace('_', ' ')}."


def aliases(value: str, dictionary: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Other spellings of a value, and its names in the collection's dictionary."""
    groups = [(name, *others) for name, others in dictionary.items()]
    squeezed = _squeezed(value)
    known = [n for group in groups if squeezed in map(_squeezed, group) for n in group]
    spelt = dict.fromkeys(s for name in (value, *known) for s in spacings(name))
    return tuple(name for name in spelt if name != value)[:MOST_ALIASES]


def sentences(text: str) -> list[str]:
    """The sentences of a passage that are neither too short nor too long; else its beginning."""
    parts = [" ".join(s.split()) for s in _SENTENCE.split(text)]
    fitting = [s for s in parts if SHORTEST <= len(s) <= LONGEST]
    return fitting or [" ".join(text[:LONGEST].split())]


def spread(texts: Iterable[list[str]], most: int) -> list[str]:
    """The first sentence of each text, then the second of each, up to `most`; no sentence twice."""
    lists = list(texts)
    deepest = max(map(len, lists), default=0)
    taken = (some[depth] for depth in range(deepest) for some in lists if depth < len(some))
    return list(dict.fromkeys(taken))[:most]


def _squeezed(name: str) -> str:
    return "".join(name.split()).casefold()
