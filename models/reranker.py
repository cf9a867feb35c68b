"""The contract of rerankers, and what they share."""

import time
from collections.abc import Callable, Sequence
from typing import Protocol

from callslip.errors import RerankerDown


class Reranker(Protocol):
    """Reads a question and a passage together. One per process, made after the fork."""

    @property
    def name(self) -> str:
        """Kind and model: `maxsim/e5-small/1571fc98`, `onnx/FILE`, `api/MODEL`."""
        ...

    def scores(self, query: str, passages: Sequence[str], deadline_seconds: float) -> list[float]:
        """How well each passage answers the question, in the order of the passages.

        Higher is better; every score is finite; they are compared within one call only. The local
        kinds give 0 to 1, a server what its model gives. A blank passage is never read and gets the
        lowest score of its list; of one too long the beginning is read. The same call gives the
        same scores.

        Raises RerankerDown when that cannot be had `deadline_seconds` from now, SettingsError when
        the file, the address or the key is wrong.
        """
        ...


class Deadline:
    """A moment after which nobody waits for the scores any more."""

    def __init__(self, seconds: float) -> None:
        """`seconds` from now."""
        self._seconds = seconds
        self._at = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds until then, 0 when it has passed."""
        return max(0.0, self._at - time.monotonic())

    def check(self, done: int, count: int) -> None:
        """Raise RerankerDown when it has passed; `done` passages of `count` were read by now."""
        if not self.left:
            raise self.passed(f"read {done} of {count} passages")

    def passed(self, what: str) -> RerankerDown:
        """The error for not having been in time."""
        return RerankerDown(f"the reranker {what} in {self._seconds:g} s")


def blanks_last(passages: Sequence[str], read: Callable[[list[str]], list[float]]) -> list[float]:
    """Scores of all passages, where `read` gives those of the passages that are not blank."""
    kept = [i for i, passage in enumerate(passages) if passage.strip()]
    if not kept:
        return [0.0] * len(passages)
    read_scores = read([passages[i] for i in kept])
    scores = [min(read_scores)] * len(passages)
    for i, score in zip(kept, read_scores, strict=True):
        scores[i] = score
    return scores
