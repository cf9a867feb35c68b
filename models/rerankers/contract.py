"""The contract of rerankers, and the code that all rerankers share."""

import time
from collections.abc import Callable, Sequence
from typing import Protocol

from callslip.errors import RerankerDown


class Reranker(Protocol):
    """Scores passages for a query. A process has one reranker, made after the fork."""

    @property
    def name(self) -> str:
        """The kind and the model: `maxsim/e5-small/1571fc98`, `onnx/FILE`, `api/MODEL`."""
        ...

    def scores(self, query: str, passages: Sequence[str], deadline_seconds: float) -> list[float]:
        """Return how well each passage answers the query, in the order of the passages.

        Higher is better. Every score is finite, and comparable only with scores of the same call.
        Local rerankers return 0 to 1, a server uses its model's scale. A blank passage is never
        read and gets the lowest score of the call; of a passage that is too long, only the
        beginning is read. The same call returns the same scores.

        Raises RerankerDown if the scores are not complete after `deadline_seconds`; SettingsError
        if the file, the address or the key is wrong.
        """
        ...


class Deadline:
    """The time after which no caller waits for the scores."""

    def __init__(self, seconds: float) -> None:
        """The deadline is `seconds` from now."""
        self._seconds = seconds
        self._at = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """The seconds until the deadline, 0 after it."""
        return max(0.0, self._at - time.monotonic())

    def check(self, done: int, count: int) -> None:
        """Raise RerankerDown after the deadline, with `done` of `count` passages in the message."""
        if not self.left:
            raise self.passed(f"read {done} of {count} passages")

    def passed(self, what: str) -> RerankerDown:
        """Return the error for a missed deadline."""
        return RerankerDown(f"the reranker {what} in {self._seconds:g} s")


def blanks_last(passages: Sequence[str], read: Callable[[list[str]], list[float]]) -> list[float]:
    """Return the scores of all passages; `read` returns the scores of passages that are not blank.

    A blank passage gets the lowest score.
    """
    readable = [i for i, passage in enumerate(passages) if passage.strip()]
    if not readable:
        return [0.0] * len(passages)
    read_scores = read([passages[i] for i in readable])
    scores = [min(read_scores)] * len(passages)
    for i, score in zip(readable, read_scores, strict=True):
        scores[i] = score
    return scores
