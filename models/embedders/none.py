"""The embedder of an installation that searches by keywords alone."""

import sys
from collections.abc import Sequence

import numpy as np

from callslip.models.embedders.contract import Vectors


class LexicalEmbedder:
    """An `Embedder` of one dimension that gives every text the same vector.

    It provides vectors to stores that need them; `lexical_only` makes a search omit the vector
    retriever.
    """

    model = "none"
    dimension = 1
    max_tokens = sys.maxsize
    lexical_only = True

    def passages(self, texts: Sequence[str]) -> Vectors:
        """Return ones: shape (len(texts), 1)."""
        return np.ones((len(texts), 1), np.float32)

    def query(self, text: str) -> Vectors:
        """Return a one: shape (1,)."""
        return np.ones(1, np.float32)
