"""TF-IDF over words and pairs of adjacent words, weighted by scikit-learn.

Scores are those of scikit-learn's TfidfVectorizer with `ngram_range=(1, 2)`. The vectorizer's
dictionary of every n-gram's text takes most of its memory and time: here an n-gram is an integer
computed from its words' numbers, and the n-grams of a collection are one sorted array.
"""

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

UNKNOWN = (1 << 31) - 1
"""The number of a word that no text contains."""

_TEXTS_PER_STEP = 5000

_BELOW = 1 - 1e-9
"""Sums in another order differ by less than this share."""

_TINY = float(np.finfo(np.float64).tiny)
"""Less than the score of any text that has an n-gram of the query."""

_MANY = 50_000
"""Fewer entries of the n-grams of a query are read in less time than a bound takes."""

_FEW = 4000
"""So many texts that pass take less time to look up than a bound and the sums."""

_LIKELY = 4
"""The texts that bound the score of rank `limit` from below, for each text of `limit`."""


@dataclass(frozen=True)
class Counts:
    """How often each n-gram occurs: `matrix` has a row for each text and a column for each n-gram.

    `grams` are ascending. A single word is its number, a pair is `(first + 1) << 32 | second`.
    """

    grams: Integers
    matrix: Any  # csr_array of 32-bit floats

    def weighed(self, transformer: TfidfTransformer) -> "Postings":
        """Weight the counts by TF-IDF, and scale each row to length 1."""
        if not self.matrix.nnz:
            return Postings(self.grams, self.matrix.tocsc())
        return Postings(self.grams, transformer.transform(self.matrix).tocsc())


@dataclass(frozen=True)
class Postings:
    """The weights of n-grams in texts, by n-gram: a csc_array of shape (texts, grams)."""

    grams: Integers
    matrix: Any

    def add_to(self, scores: Floats, grams: Integers, weights: Floats) -> None:
        """Add the products of a query's weights and the texts' weights to the texts' scores."""
        at = _columns(self.grams, grams)
        for column, weight in zip(at[at >= 0], weights[at >= 0], strict=True):
            rows, weights_of = self._posting(column)
            scores[rows] += weights_of * weight

    def best(
        self, grams: Integers, weights: Floats, limit: int, passing: npt.NDArray[np.bool_]
    ) -> tuple[Integers, Floats]:
        """The rows of the best texts that pass and their products with a query's weights.

        Returns all ties, in undefined order. Adds the n-grams in the order of their weights, so
        that a text has the same sum in any group of texts. Texts that have only n-grams which
        together cannot reach a bound of the score of rank `limit` are not read, and a text is no
        longer looked up in the n-grams that remain once these cannot lift it to the bound:
        MaxScore, Turtle and Flood, "Query evaluation: strategies and optimizations", IPM 31 (1995).
        Where few texts pass, all n-grams are looked up for these.
        """
        order = np.argsort(-weights, kind="stable")
        at = _columns(self.grams, grams[order])
        columns, weights = at[at >= 0], weights[order][at >= 0]
        bounds = weights * (self._tops[columns] if len(columns) else 1.0)
        most = np.concatenate([np.cumsum(bounds[::-1])[::-1], np.zeros(1)])
        least, needed = -np.inf, len(columns)
        entries = (self.matrix.indptr[columns + 1] - self.matrix.indptr[columns]).sum()
        if entries > _MANY and np.count_nonzero(passing) <= _FEW:
            needed = 0
        elif entries > max(_MANY, limit * _LIKELY * len(columns)):
            least = self._least(columns, weights, limit, passing) * _BELOW
            needed = int(np.count_nonzero(most[:-1] >= least))
        if needed:
            sums = self.matrix[:, columns[:needed]] @ weights[:needed]
            rows = np.flatnonzero(sums >= max(least - most[needed], _TINY))
            rows = rows[passing[rows]].astype(self.matrix.indices.dtype)
            scores = sums[rows]
        else:
            rows = np.flatnonzero(passing).astype(self.matrix.indices.dtype)
            scores = np.zeros(len(rows))
        for i in range(needed, len(columns)):
            scores = scores + self._weights(columns[i], rows) * weights[i]
            hopeful = scores >= least - most[i + 1]
            rows, scores = rows[hopeful], scores[hopeful]
        best = (scores > 0) & (scores >= least_of_best(scores, limit))
        return rows[best], scores[best]

    def _least(
        self, columns: Integers, weights: Floats, limit: int, passing: npt.NDArray[np.bool_]
    ) -> float:
        """A bound from below of the score of rank `limit`.

        It is that of some likely texts: those with the greatest weights in the first n-grams.
        """
        number, likely = limit * _LIKELY, np.empty(0, self.matrix.indices.dtype)
        for column in columns:
            rows, weights_of = self._posting(column)
            passes = passing[rows]
            rows = rows[passes]
            if len(rows) > number:
                rows = rows[np.argpartition(weights_of[passes], -number)[-number:]]
            likely = np.union1d(likely, rows)
            if len(likely) >= number:
                break
        scores = np.zeros(len(likely))
        for column, weight in zip(columns, weights, strict=True):
            scores += self._weights(column, likely) * weight
        return least_of_best(scores, limit)

    def _weights(self, column: int, rows: Integers) -> npt.NDArray[np.float32]:
        """The weights of an n-gram in the texts of these rows; 0 where it is missing."""
        having, weights = self._posting(column)
        at = np.minimum(np.searchsorted(having, rows), len(having) - 1)
        result: npt.NDArray[np.float32] = np.where(having[at] == rows, weights[at], np.float32(0))
        return result

    @cached_property
    def _tops(self) -> npt.NDArray[np.float32]:
        """The greatest weight of each n-gram; every n-gram is in a text."""
        tops: npt.NDArray[np.float32] = np.maximum.reduceat(
            self.matrix.data, self.matrix.indptr[:-1]
        )
        return tops

    def _posting(self, column: int) -> tuple[Integers, npt.NDArray[np.float32]]:
        """The rows of the texts that contain an n-gram, ascending, and its weights there."""
        some = slice(self.matrix.indptr[column], self.matrix.indptr[column + 1])
        return self.matrix.indices[some], self.matrix.data[some]

    def holds(self, grams: Integers) -> npt.NDArray[np.bool_]:
        """For each of these n-grams, whether a text contains it."""
        return _columns(self.grams, grams) >= 0


@dataclass(frozen=True)
class Model:
    """The result of a fit: the number of each word, and each n-gram's inverse document frequency.

    `texts` is the number of texts in the fit.
    """

    words: dict[str, int]
    grams: Integers
    idf: Floats
    texts: int

    def idf_of(self, grams: Integers) -> Floats:
        """The inverse document frequencies; an n-gram outside the fit counts as in one text."""
        at = _columns(self.grams, grams)
        fresh = np.log((1 + self.texts) / 2) + 1
        return np.where(at >= 0, self.idf[at] if len(self.idf) else fresh, fresh)

    def weighed(self, counts: Counts) -> Postings:
        """Weight texts that were added after the fit."""
        transformer = TfidfTransformer()
        transformer.idf_ = self.idf_of(counts.grams).astype(np.float32)
        return counts.weighed(transformer)


def fit(texts: Iterable[str]) -> tuple[Model, Postings]:
    """Fit on analyzed texts: words separated by spaces."""
    words: defaultdict[str, int] = defaultdict(itertools.count().__next__)
    remaining = iter(texts)
    parts = []
    while some := list(itertools.islice(remaining, _TEXTS_PER_STEP)):
        parts.append(count(some, words.__getitem__))
    counts = stacked(parts)
    del parts
    if not counts.matrix.nnz:
        model = Model({}, counts.grams, np.empty(0), counts.matrix.shape[0])
        return model, Postings(counts.grams, counts.matrix.tocsc())
    transformer = TfidfTransformer().fit(counts.matrix)
    idf = transformer.idf_.astype(np.float64)
    model = Model(dict(words), counts.grams, idf, counts.matrix.shape[0])
    return model, counts.weighed(transformer)


def count(texts: Sequence[str], number: Callable[[str], int]) -> Counts:
    """Count the n-grams of texts; `number` returns a word's number."""
    split = [text.split() for text in texts]
    words = np.fromiter(map(number, itertools.chain.from_iterable(split)), np.int64)
    rows = np.repeat(np.arange(len(split), dtype=np.int32), [len(text) for text in split])
    inside = rows[1:] == rows[:-1]
    pairs = ((words[:-1] + 1) << 32 | words[1:])[inside]
    grams, columns = np.unique(np.concatenate([words, pairs]), return_inverse=True)
    at = (np.concatenate([rows, rows[1:][inside]]), columns.astype(np.int32))
    ones = np.ones(len(columns), np.float32)
    return Counts(grams, sparse.csr_array((ones, at), shape=(len(split), len(grams))))


def stacked(parts: Sequence[Counts]) -> Counts:
    """Stack the counts of several groups of texts into one matrix, in this order."""
    grams = np.unique(np.concatenate([np.empty(0, np.int64), *(part.grams for part in parts)]))
    matrices = []
    for part in parts:
        columns = np.searchsorted(grams, part.grams).astype(np.int32)
        inner = part.matrix
        matrices.append(
            sparse.csr_array(
                (inner.data, columns[inner.indices], inner.indptr),
                shape=(inner.shape[0], len(grams)),
            )
        )
    if not matrices:
        return Counts(grams, sparse.csr_array((0, 0), dtype=np.float32))
    return Counts(grams, sparse.vstack(matrices, format="csr"))


def joined(parts: Sequence[Postings]) -> Postings:
    """Stack the weights of several groups of texts into one matrix, in this order."""
    both = stacked([Counts(part.grams, part.matrix.tocsr()) for part in parts])
    return Postings(both.grams, both.matrix.tocsc())


def least_of_best(scores: Floats, limit: int) -> float:
    """The score of rank `limit`; minus infinity if there are not more scores."""
    return float(np.partition(scores, -limit)[-limit]) if len(scores) > limit else -np.inf


def _columns(sorted_: Integers, wanted: Integers) -> Integers:
    """The position of each wanted integer in a sorted array; -1 if it is missing."""
    if not len(sorted_):
        return np.full(len(wanted), -1)
    at = np.minimum(np.searchsorted(sorted_, wanted), len(sorted_) - 1)
    return np.where(sorted_[at] == wanted, at, -1)
