"""Texts and vectors for a collection of any size, drawn from real passages and their vectors."""

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from callslip.models.text.analyzer import Analyzer

SENTENCES = (3, 9)
"""The least and the most sentences of a chunk."""

NEIGHBOURS, SPREAD = 10, 0.5
"""The nearest neighbours among which a vector is resampled, and its noise as a share of their
distance."""


class Vectors:
    """Resamples vectors: between a real vector and one of its nearest, with noise (SMOTE).

    Chawla et al., "SMOTE: Synthetic Minority Over-sampling Technique", JAIR 16 (2002), with noise
    so that a million vectors do not lie on the lines between some hundred ones.
    """

    def __init__(self, real: npt.NDArray[np.float32], rng: np.random.Generator) -> None:
        self._real, self._rng = real, rng
        near = np.argsort(-(real @ real.T), axis=1)[:, 1 : NEIGHBOURS + 1]
        self._near = near
        steps = real[near[:, 0]] - real
        self._noise = SPREAD * np.linalg.norm(steps, axis=1).mean() / np.sqrt(real.shape[1])

    def draw(self, count: int) -> npt.NDArray[np.float32]:
        """Return `count` unit vectors, shape (count, dimension)."""
        first = self._rng.integers(len(self._real), size=count)
        other = self._near[first, self._rng.integers(self._near.shape[1], size=count)]
        share = self._rng.random((count, 1), dtype=np.float32)
        drawn = self._real[first] + share * (self._real[other] - self._real[first])
        drawn += self._rng.standard_normal(drawn.shape, dtype=np.float32) * self._noise
        return np.asarray(drawn / np.linalg.norm(drawn, axis=1, keepdims=True), np.float32)


class Texts:
    """Draws texts of sentences, and their terms, from the passages of judged sets."""

    def __init__(self, passages: Sequence[str], analyzer: Analyzer, rng: np.random.Generator):
        every = (s for p in passages for s in re.split(r"(?<=[.!?다])\s+", p))
        self._sentences = [s for s in every if 20 <= len(s) <= 400]
        self._terms = [analyzer.analyze(s) for s in self._sentences]
        self._rng = rng

    def draw(self) -> tuple[str, str]:
        """Return a text and its terms."""
        count = int(self._rng.integers(*SENTENCES))
        which = self._rng.integers(len(self._sentences), size=count)
        body = " ".join(self._sentences[i] for i in which)
        return body, " ".join(self._terms[i] for i in which)

    def question(self) -> str:
        """Return some words in a row of a sentence."""
        words = self._sentences[int(self._rng.integers(len(self._sentences)))].split()
        return " ".join(words[: int(self._rng.integers(4, 10))])
