"""scikit-learn's TF-IDF and a matrix of vectors in memory, as in a script."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.feature_extraction.text import TfidfVectorizer

from benchmarks.stores.baseline.base import KIND, Baseline
from callslip.config.settings import Settings
from callslip.stores.records import ChunkRecord, Vector


class BaselineTfidf(Baseline):
    """All data is in memory; a batch is searchable after `settle` has fitted the model."""

    writes = False

    def __init__(self, settings: Settings) -> None:
        self._chunks: list[ChunkRecord] = []

    def create(self, dimension: int) -> None:
        self._chunks = []

    def upsert(self, chunks: Sequence[ChunkRecord]) -> None:
        self._chunks += chunks

    def settle(self) -> None:
        self._vectorizer = TfidfVectorizer(
            tokenizer=str.split, token_pattern=None, lowercase=False, ngram_range=(1, 2)
        )
        self._terms = self._vectorizer.fit_transform([c.terms for c in self._chunks]).tocsc()
        self._vectors = np.stack([c.vector for c in self._chunks])
        self._kinds = np.array([str(c.properties[KIND]) for c in self._chunks])

    def vector(self, vector: Vector, limit: int, kind: str | None) -> list[str]:
        return self._best(self._vectors @ vector, limit, kind)

    def keyword(self, terms: str, limit: int, kind: str | None) -> list[str]:
        query = self._vectorizer.transform([terms])
        scores = self._terms[:, query.indices] @ query.data
        return self._best(scores, limit, kind)

    def _best(self, scores: npt.NDArray[Any], limit: int, kind: str | None) -> list[str]:
        if kind:
            scores = np.where(self._kinds == kind, scores, -np.inf)
        order = np.argpartition(-scores, min(limit, len(scores) - 1))[:limit]
        return [self._chunks[at].chunk_id for at in order[np.argsort(-scores[order])]]

    def drop(self) -> None:
        self._chunks = []
