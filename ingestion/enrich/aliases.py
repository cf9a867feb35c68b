"""Finds other names of an entity: spellings, abbreviations, and names in a dictionary."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from callslip.languages.ko.morphemes import spacings
from callslip.languages.scripts import HANGUL
from callslip.models.entities import Entity

_HANGUL = re.compile(f"[{HANGUL}]")
_SPACED_KINDS = ("law", "programme", "organisation")
_BRACKET = re.compile(
    r"[」』\"”’]?\s?\(\s*+(?P<called>이하)?\s*+(?:[\"“'‘「](?P<quoted>[^()\"“”'‘’「」]{2,30})[\"”'’」]"
    r"|(?P<plain>[^()\"“”'‘’「」\s]{2,12}))\s*+(?:이?라\s*+(?:한다|함|칭한다)?\.?\s*+)?\)"
)
_ACRONYM = re.compile(r"[A-Z][A-Za-z&-]*[A-Z]s?")


def spellings(entity: Entity) -> list[str]:
    """Return the name, a Korean one with and without spaces: 출산 장려금, 출산장려금."""
    return spacings(entity.name) if entity.kind in _SPACED_KINDS else [entity.name]


def abbreviations(text: str, entities: Iterable[Entity]) -> Iterator[tuple[str, str]]:
    """Yield each entity's name and the abbreviation after it.

    Examples: `Data Protection Commission (DPC)`, 국민건강보험공단(이하 "공단").
    """
    for entity in entities:
        if entity.kind == "date" or not (match := _BRACKET.match(text, entity.end)):
            continue
        short = (match["quoted"] or match["plain"]).strip()
        if (match["called"] and short != entity.name) or _abbreviates(short, entity.name):
            yield entity.name, short


class Dictionary:
    """Groups of names, each group for one entity, and a search for these names in texts."""

    def __init__(self, names: Mapping[str, Sequence[str]]) -> None:
        self._groups = [tuple(dict.fromkeys((name, *names[name]))) for name in names]
        self._finders = [(_finder(name), group) for group in self._groups for name in group]

    def find(self, text: str) -> list[str]:
        """Return every name of each group of which one name occurs in the text.

        Ignores case and, in Korean, spaces; a Latin name must be a whole word.
        """
        squeezed = _squeezed(text)
        matching: dict[str, None] = {}
        for (sought, word), group in self._finders:
            if sought in squeezed and (word is None or word.search(text)):
                matching.update(dict.fromkeys(group))
        return list(matching)


def _finder(name: str) -> tuple[str, re.Pattern[str] | None]:
    """Return the name without spaces, and the pattern of the whole name if it is Latin."""
    if _HANGUL.search(name):
        return _squeezed(name), None
    words = r"\s+".join(map(re.escape, name.split()))
    return _squeezed(name), re.compile(rf"(?<!\w){words}(?!\w)", re.I)


def _squeezed(text: str) -> str:
    return "".join(text.split()).lower()


def _abbreviates(short: str, name: str) -> bool:
    """Whether this is an acronym; after an English name, only one of the initials of its words."""
    if not _ACRONYM.fullmatch(short):
        return False
    initials = "".join(word[0] for word in re.findall(r"[A-Za-z]+", name) if word[0].isupper())
    letters = "".join(c for c in short if c.isupper())
    return bool(_HANGUL.search(name)) or letters in (initials, initials[: len(letters)])
