"""The contract of embedders."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]


class Embedder(Protocol):
    """Turns text into unit vectors. One per process, made after the fork."""

    @property
    def model(self) -> str:
        """The name that vectors are cached and collections are made under: `e5-small/1571fc98`."""
        ...

    @property
    def dimension(self) -> int:
        """Length of every vector."""
        ...

    @property
    def max_tokens(self) -> int:
        """Longest text, in `models.tokens`, that is read whole; of others the beginning is."""
        ...

    @property
    def lexical_only(self) -> bool:
        """Whether the vectors say nothing of the text, so that a search leaves their leg out."""
        ...

    def passages(self, texts: Sequence[str]) -> Vectors:
        """Embed what is stored: shape (len(texts), dimension), float32, rows of length 1.

        Raises EmbedderDown when a server does not answer, InvalidRequest for an empty text.
        """
        ...

    def query(self, text: str) -> Vectors:
        """Embed a question: shape (dimension,), float32, length 1. Errors as for `passages`."""
        ...
