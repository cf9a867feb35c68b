"""The contract of embedders."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]


class Embedder(Protocol):
    """Maps texts to vectors of length 1. A process has one embedder, made after the fork."""

    @property
    def model(self) -> str:
        """The model's name in the vector cache and in collections, such as `e5-small/1571fc98`."""
        ...

    @property
    def dimension(self) -> int:
        """The number of components of every vector."""
        ...

    @property
    def max_tokens(self) -> int:
        """The longest text, in tokens of `models.e5.tokens`, that is embedded whole.

        Of a longer text only the beginning is embedded.
        """
        ...

    @property
    def lexical_only(self) -> bool:
        """Whether the vectors carry no meaning, so that a search omits the vector retriever."""
        ...

    def passages(self, texts: Sequence[str]) -> Vectors:
        """Embed passages: shape (len(texts), dimension), float32, rows of length 1.

        Raises EmbedderDown if a server does not answer or a vector is not finite, InvalidRequest
        for an empty text.
        """
        ...

    def query(self, text: str) -> Vectors:
        """Embed a query: shape (dimension,), float32, length 1. Errors as for `passages`."""
        ...
