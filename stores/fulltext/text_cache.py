"""Texts that a process has read out of blocks, so that frequent ones are decompressed once."""

import itertools
import sys
import threading
from collections.abc import Iterable, Mapping

Key = tuple[object, str, int]
"""The open file, the column and the slot of a text."""

_LARGEST_SHARE = 0.01
"""The share of the cache that one text may take: a whole document would drop many passages."""

_ENTRY_BYTES = 300
"""What an entry takes beside its text, about."""


class TextCache:
    """Keeps at most `most_bytes`; drops the older half when full. Threads share it."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._lock = threading.Lock()
        self._texts: dict[Key, str] = {}
        self.size = 0

    def get(self, file: object, column: str, slots: Iterable[int]) -> dict[int, str]:
        """The kept texts, by slot."""
        texts = self._texts
        return {n: text for n in slots if (text := texts.get((file, column, n))) is not None}

    def add(self, file: object, column: str, texts: Mapping[int, str]) -> None:
        """Keep texts by slot. A slot always has the same text."""
        with self._lock:
            for slot, text in texts.items():
                size = _ENTRY_BYTES + sys.getsizeof(text)
                key = file, column, slot
                if key not in self._texts and size <= self._most * _LARGEST_SHARE:
                    self._texts[key] = text
                    self.size += size
            while self.size > self._most:
                self._drop(len(self._texts) // 2 + 1)

    def _drop(self, count: int) -> None:
        for key in list(itertools.islice(self._texts, count)):
            self.size -= _ENTRY_BYTES + sys.getsizeof(self._texts.pop(key))
