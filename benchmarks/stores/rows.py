"""Synthetic chunks and queries for timing: words with Zipf's law, vectors in clusters."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from callslip.stores.records import ChunkRecord, Vector

VOCABULARY, QUERY_WORDS = 50_000, 6
LEAST_WORDS, MOST_WORDS = 40, 160
DIMENSION, CLUSTERS = 384, 200
KINDS = [f"kind{n}" for n in range(10)]
PER_DOCUMENT = 20


@dataclass(frozen=True)
class Question:
    """A query for both retrievers, with a filter value that matches a tenth of the chunks."""

    vector: Vector
    terms: str
    kind: str


class Rows:
    """Makes chunks and queries; the same seed makes the same ones."""

    def __init__(self, seed: int = 7) -> None:
        self._rng = np.random.default_rng(seed)
        ranks = np.arange(1, VOCABULARY + 1)
        self._weights = (1 / ranks) / (1 / ranks).sum()
        self._centres = self._rng.normal(size=(CLUSTERS, DIMENSION))

    def chunks(self, count: int, start: int = 0) -> Iterator[ChunkRecord]:
        """Iterate over `count` chunks, 20 for each document, numbered from `start`."""
        for number in range(start, start + count):
            words = self._words(int(self._rng.integers(LEAST_WORDS, MOST_WORDS)))
            yield ChunkRecord(
                chunk_id=f"{number:032x}",
                document_id=f"{number // PER_DOCUMENT:032x}",
                body=" ".join(words),
                terms=" ".join(words),
                vector=self._vector(),
                section="1/2",
                heading="A heading of some words",
                title=f"Document {number // PER_DOCUMENT}",
                filename=f"{number // PER_DOCUMENT}.pdf",
                lang="en",
                level=2,
                ordinal=number % PER_DOCUMENT,
                properties={
                    "kind": KINDS[number % len(KINDS)],
                    "year": 2000 + number % 25,
                    "tags": [f"tag{number % 7}", f"tag{number % 11}"],
                    "valid_from": f"20{number % 25:02}-01-01",
                },
            )

    def questions(self, count: int) -> list[Question]:
        """Return `count` queries with words of medium frequency, which are typical of questions."""
        return [
            Question(
                self._vector(),
                " ".join(f"w{n}" for n in self._rng.integers(20, 5000, QUERY_WORDS)),
                KINDS[n % len(KINDS)],
            )
            for n in range(count)
        ]

    def _words(self, count: int) -> list[str]:
        numbers: npt.NDArray[np.int64] = self._rng.choice(VOCABULARY, count, p=self._weights)
        return [f"w{n}" for n in numbers]

    def _vector(self) -> Vector:
        vector = self._centres[self._rng.integers(CLUSTERS)] + self._rng.normal(size=DIMENSION)
        return np.asarray(vector / np.linalg.norm(vector), np.float32)
