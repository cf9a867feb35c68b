"""An analyzer and an embedder that are new to a collection, and chunks that can be made anew."""

from typing import Any

import numpy as np
from moving import chunks_of

from callslip.models.embedders.contract import Vectors
from callslip.stores.records import ChunkRecord


class NewEmbedder:
    """Vectors of another dimension, and as many texts as it was given."""

    model, dimension, max_tokens, lexical_only = "new", 3, 100, False

    def __init__(self) -> None:
        self.texts: list[str] = []

    def passages(self, texts: Any) -> Vectors:
        self.texts += texts
        rows = np.array([[len(t), sum(map(ord, t)) % 97 + 1, 1] for t in texts], np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


class NewAnalyzer:
    """Terms that the present form does not have."""

    version = "new"

    def analyze(self, text: str) -> str:
        return " ".join(f"new-{word}" for word in text.split())


class Words:
    """A token is a character."""

    def offsets(self, text: str) -> list[int]:
        return list(range(len(text)))


def plain_chunks(document_id: str, text: str, properties: Any) -> list[ChunkRecord]:
    """A document with its passages."""
    chunks = chunks_of(document_id, text, properties)
    return [
        ChunkRecord(**{**c.__dict__, "named": {}, "level": 2 if n else 0})
        for n, c in enumerate(chunks)
    ]
