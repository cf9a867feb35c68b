"""Korean morpheme analysis with Kiwi; all callers in a process share one analyzer."""

import re
import threading
import warnings
from functools import lru_cache
from typing import NamedTuple

from kiwipiepy import Kiwi

from callslip.languages.scripts import HANGUL
from callslip.per_process import PerProcess

RECENT = 16
"""The number of texts whose morphemes are remembered, 75 KB for 1,000 characters."""

_HANGUL = re.compile(f"[{HANGUL}]")


class Morpheme(NamedTuple):
    """A morpheme with its tag (Sejong tag set) and its span in the text."""

    form: str
    tag: str
    start: int
    end: int


class Morphemes:
    """Analyses Korean text. Threads may share an instance. Loading takes a second and 330 MB."""

    def __init__(self) -> None:
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
            # No threads, because they would multiply with the processes. Kiwi's dictionary of
            # multi-word names would join words that must match separately, and takes 190 MB.
            self._kiwi = Kiwi(num_workers=0, load_multi_dict=False, load_typo_dict=False)
        self._lock = threading.Lock()
        self._recent = lru_cache(RECENT)(self._analyzed)

    def of(self, text: str) -> tuple[Morpheme, ...]:
        """Return the morphemes of a text of a few thousand characters at most.

        The names and the terms of a chunk are both made from the morphemes of the same text: so
        the last few texts are remembered.
        """
        return self._recent(text)

    def _analyzed(self, text: str) -> tuple[Morpheme, ...]:
        with self._lock:
            tokens = self._kiwi.tokenize(text)
        return tuple([Morpheme(t.form, t.tag, t.start, t.end) for t in tokens])

    def spaced(self, text: str) -> str:
        """Return the text with the spaces of Korean orthography."""
        with self._lock:
            spaced_text: str = self._kiwi.space(text, reset_whitespace=True)
        return spaced_text


MORPHEMES = PerProcess(Morphemes, forkable=True)


def spacings(name: str) -> list[str]:
    """Return the name, and if it is Korean also its forms with and without spaces.

    An example is 출산 장려금, 출산장려금.
    """
    if not _HANGUL.search(name):
        return [name]
    joined = "".join(name.split())
    return list(dict.fromkeys((name, joined, _spaced(joined))))


@lru_cache(maxsize=4096)
def _spaced(name: str) -> str:
    return MORPHEMES.get().spaced(name)
