"""No embedder: for installations that search by keywords alone."""

import sys
from collections.abc import Sequence

import numpy as np

from models.embedder import Vectors


class LexicalEmbedder:
    """An `Embedder` of one dimension that gives every text the same vector.

    So a store that demands vectors is content, and `lexical_only` tells a search to leave out the
    vector leg.
    """

    model = "none"
    dimension = 1
    max_tokens = sys.maxsize
    lexical_only = True

    def passages(self, texts: Sequence[str]) -> Vectors:
        """Ones: shape (len(texts), 1)."""
        return np.ones((len(texts), 1), np.float32)

    def query(self, text: str) -> Vectors:
        """A one: shape (1,)."""
        return np.ones(1, np.float32)
