"""Kiwi, the Korean morpheme analysis: one of it per process serves all who need it."""

import re
import threading
import warnings
from dataclasses import dataclass
from functools import lru_cache

from kiwipiepy import Kiwi

from models.language import HANGUL
from models.per_process import PerProcess

_HANGUL = re.compile(f"[{HANGUL}]")


@dataclass(frozen=True)
class Morpheme:
    """A morpheme with its tag (Sejong) and its span in the text."""

    form: str
    tag: str
    start: int
    end: int


class Morphemes:
    """Threads may share it. Loading takes a second and 330 MB."""

    def __init__(self) -> None:
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
            # No threads of its own, so that processes do not multiply them. Its dictionary of names
            # of several words would glue together what is to be found apart, and takes 190 MB.
            self._kiwi = Kiwi(num_workers=0, load_multi_dict=False, load_typo_dict=False)
        self._lock = threading.Lock()

    def of(self, text: str) -> list[Morpheme]:
        """The morphemes of a text of some thousand characters at most."""
        with self._lock:
            tokens = self._kiwi.tokenize(text)
        return [Morpheme(t.form, t.tag, t.start, t.end) for t in tokens]

    def spaced(self, text: str) -> str:
        """The text with spaces where Korean orthography wants them."""
        with self._lock:
            found: str = self._kiwi.space(text, reset_whitespace=True)
        return found


MORPHEMES = PerProcess(Morphemes)


def spacings(name: str) -> list[str]:
    """The name, and a Korean one with and without its spaces: 출산 장려금, 출산장려금."""
    if not _HANGUL.search(name):
        return [name]
    joined = "".join(name.split())
    return list(dict.fromkeys((name, joined, _spaced(joined))))


@lru_cache(maxsize=4096)
def _spaced(name: str) -> str:
    return MORPHEMES.get().spaced(name)
