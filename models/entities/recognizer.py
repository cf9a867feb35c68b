"""Entities of a text in English, Korean, or both."""

import re
from collections.abc import Sequence

from models.entities import english, korean
from models.entities.dates import days
from models.entities.entity import Entity, settle
from models.language import HANGUL, lang

VERSION = f"1+{english.VERSION}"
"""Raised when another entity would be found in the same text."""

_HANGUL = re.compile(f"[{HANGUL}]")


class Recognizer:
    """Threads may share it. Its models load when a text of their language is first seen."""

    version = VERSION

    def __init__(self) -> None:
        self._english = english.English()
        self._korean = korean.Korean()

    def find(self, texts: Sequence[str]) -> list[list[Entity]]:
        """The entities of each text in order, none over another.

        English text is read by spaCy's model, Hangul in any text by its morphemes. Text of other
        languages gives days only.
        """
        latin = [n for n, text in enumerate(texts) if lang(text) == "en"]
        english_finds = self._english.find([texts[n] for n in latin]) if latin else ()
        read = dict(zip(latin, english_finds, strict=True))
        return [self._settled(text, read.get(n, [])) for n, text in enumerate(texts)]

    def find_by_form(self, text: str) -> list[Entity]:
        """The same without spaCy, for a question: in English laws, bodies and programmes alone.

        .5 to 1.5 ms, where spaCy takes 3 and 115 MB.
        """
        return self._settled(text, english.formed(text))

    def _settled(self, text: str, read: list[Entity]) -> list[Entity]:
        dated = [Entity(d.day.isoformat(), "date", d.start, d.end) for d in days(text)]
        hangul = self._korean.find(text) if _HANGUL.search(text) else []
        return settle(dated, hangul, read)
