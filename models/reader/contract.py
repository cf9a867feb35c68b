"""The contract of a reader, which finds the sentences of passages that answer a question."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

LogOdds = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Passage:
    """The sentences of a passage, in order, and the heading that they stand under."""

    heading: str
    sentences: Sequence[str]


class Reads(Protocol):
    """A reader."""

    def read(self, question: str, passages: Sequence[Passage]) -> list[LogOdds]:
        """Return the log odds of each sentence of each passage, in the order of the input."""
