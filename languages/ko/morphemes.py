"""Korean morpheme analysis with Kiwi; all callers in a process share one analyzer."""

import re
import threading
import warnings
from dataclasses import dataclass
from functools import lru_cache

from kiwipiepy import Kiwi

from callslip.languages.scripts import HANGUL
from callslip.per_process import PerProcess

_HANGUL = re.compile(f"[{HANGUL}]")


@dataclass(frozen=True)
class Morpheme:
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

    def of(self, text: str) -> list[Morpheme]:
        """Return the morphemes of a text of a few thousand characters at most."""
        with self._lock:
            tokens = self._kiwi.tokenize(text)
        return [Morpheme(t.form, t.tag, t.start, t.end) for t in tokens]

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
