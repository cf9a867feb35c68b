"""Score calibration: compares scores with those of a random sample of a collection's passages.

A cosine of 0.86 tells little. A cosine six standard deviations above the mean of randomly chosen
passages tells a lot. A BM25 score is compared with the score of a passage that has all words of
the question. docs/quality.md has the measured effect.
"""

import logging
import math
import threading
import time
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from callslip.errors import CallslipError
from callslip.retrieval.caches import Cache
from callslip.stores.contract import Store
from callslip.stores.fusion import Scale
from callslip.stores.ledger import Ledger, Unreadable
from callslip.stores.levels import PASSAGE, PASSAGES
from callslip.stores.metrics import Metric, scores
from callslip.stores.properties.filters import Where
from callslip.stores.records import StoredChunk, Vector

log = logging.getLogger(__name__)

SAMPLE = 512
"""Passages in a sample. Sizes from 256 to all 6,000 passages gave the same nDCG@10 within .002 on
four judged sets."""

LEAST = 32
"""The minimum number of passages for a meaningful mean and standard deviation."""

COUNTED = 4096
"""Passages whose terms are counted for the evidence of answers, the sample among them. With the
frequencies of 512 passages two ingestions of 148 handbooks differed in three of 30 answers."""

PARENTS = 2
"""The maximum number of parent chunks per passage: a document of one passage has two."""

FRESH_SECONDS = 60.0
"""The age in seconds after which a full sample is read again."""

MOST_CACHED = 256
"""The maximum number of samples in one process: one per collection, tenant and what a reader may
read, of 1 to 4 MB."""

K1_PLUS_1 = 2.2
"""The upper bound of a term's BM25 score per unit of its idf: k1 + 1, with k1 = 1.2."""


@dataclass(frozen=True)
class Frequencies:
    """For each term the number of passages, among `passages`, that contain it."""

    of: Mapping[str, int]
    passages: int


NOTHING_COUNTED = Frequencies({}, 0)


@dataclass(frozen=True)
class ScoreCalibration:
    """A sample of a collection's passages.

    `vectors` maps a vector name to an array of shape (sample, dimension). `frequencies` maps a term
    to the number of sample passages that contain the term. `sample` is the number of passages in
    the sample, `passages` the number of passages in the collection. `terms` has the terms of
    each passage of the sample in order, each between spaces. `counted` is a larger sample, of
    which only the frequencies are known; the evidence of answers needs their precision.
    """

    vectors: Mapping[str, Vector]
    frequencies: Mapping[str, int]
    sample: int
    passages: int
    terms: Sequence[str] = ()
    counted: Frequencies = NOTHING_COUNTED

    def scale(
        self, vector: Vector | None, vector_name: str, metric: Metric, terms: str, bm25: bool
    ) -> Scale | None:
        """Return the scale that makes the retrievers' scores for this question comparable.

        Returns None if the sample is too small. `bm25` is false if the keyword retriever returns
        cosines, whose maximum is 1.
        """
        few = len(self.vectors.get(vector_name, ())) < LEAST
        if self.sample < LEAST or (vector is not None and few):
            return None
        mean, deviation = 0.0, 0.0
        if vector is not None:
            mean, deviation = self.moments(vector, vector_name, metric)
        information = self.most(terms) / K1_PLUS_1
        return Scale(mean, deviation, K1_PLUS_1 * information if bm25 else 1.0, information)

    def moments(self, vector: Vector, vector_name: str, metric: Metric) -> tuple[float, float]:
        """Return the mean and the standard deviation of the sample's scores for a question.

        Raises KeyError if no passage of the sample has a vector of this name. Cosines are computed
        in 32 bits, in a thirtieth of the time: they differ in the seventh digit.
        """
        if metric == "cosine":
            of_sample = self._units[vector_name] @ _unit(vector)
        else:
            of_sample = scores(metric, vector, self.vectors[vector_name])
        return float(of_sample.mean(dtype=np.float64)), float(of_sample.std(dtype=np.float64))

    @cached_property
    def _units(self) -> Mapping[str, Vector]:
        return {name: _unit(rows) for name, rows in self.vectors.items()}

    def most(self, terms: str) -> float:
        """Return the upper bound of a passage's BM25 score: (k1 + 1) times the sum of the idf."""
        idf = self.idf(terms)
        return K1_PLUS_1 * sum(n * idf[term] for term, n in Counter(terms.split()).items())

    def idf(self, terms: str) -> dict[str, float]:
        """Return each term's inverse document frequency for BM25 (Robertson and Zaragoza 2009).

        `ln(1 + (N - n + .5) / (n + .5))`, where n of N passages contain the term; n is estimated
        from the sample. Without a sample every term has the same weight.
        """
        return self._idf(terms, Frequencies(self.frequencies, self.sample))

    def counted_idf(self, terms: str) -> dict[str, float]:
        """Return what `idf` returns, estimated from the larger sample if there is one."""
        return self._idf(terms, self.words)

    @property
    def words(self) -> Frequencies:
        """The frequencies of the larger sample, or else of the sample."""
        return self.counted if self.counted.passages else Frequencies(self.frequencies, self.sample)

    def _idf(self, terms: str, frequencies: Frequencies) -> dict[str, float]:
        weights = {}
        share = self.passages / max(frequencies.passages, 1)
        for term in set(terms.split()):
            n = frequencies.of.get(term, 0) * share
            weights[term] = math.log(1 + (self.passages - n + 0.5) / (n + 0.5))
        return weights


def _unit(vectors: Vector) -> Vector:
    """Vectors of length 1 in the same directions; a vector of zeros stays as it is.

    The length is computed in 64 bits: in 32 bits that of a long or a short vector has no value.
    """
    exact = vectors.astype(np.float64)
    lengths = np.linalg.norm(exact, axis=-1, keepdims=True)
    return np.asarray(exact / np.where(lengths > 0, lengths, 1.0), np.float32)


NOTHING_UNREADABLE = Unreadable()

NO_SAMPLE = ScoreCalibration({}, {}, 0, 0)

ALL_PASSAGES = Where(every=(PASSAGES,))


def sample(
    store: Store,
    ledger: Ledger,
    collection: str,
    tenant: str,
    unreadable: Unreadable = NOTHING_UNREADABLE,
) -> ScoreCalibration:
    """Read a sample. Chunk ids are hashes, so the first ids are a random sample."""
    ids = ledger.chunks.first_visible(collection, tenant, (1 + PARENTS) * COUNTED)
    passages: list[StoredChunk] = []
    frequencies: Counter[str] = Counter()
    in_sample: Counter[str] = Counter()
    counted = 0
    for start in range(0, len(ids), SAMPLE):
        chunks = store.get_chunks(
            collection,
            ids[start : start + SAMPLE],
            tenant=tenant,
            include_vector=len(passages) < SAMPLE,
            include_terms=True,
        )
        read = [chunk for chunk in chunks if chunk.level >= PASSAGE][: COUNTED - counted]
        new = read[: SAMPLE - len(passages)]
        in_sample.update(_distinct(new))
        frequencies.update(_distinct(read))
        counted += len(read)
        passages += new
        if counted >= COUNTED:
            break
    if not passages:
        return NO_SAMPLE
    readable = unreadable.left_out_of(ALL_PASSAGES)
    return ScoreCalibration(
        {name: _stacked(passages, name) for name in ("", *_names(passages))},
        in_sample,
        len(passages),
        max(counted, store.count(collection, readable, tenant=tenant)),
        [f" {chunk.terms or ''} " for chunk in passages],
        Frequencies(frequencies, counted),
    )


def _distinct(chunks: Iterable[StoredChunk]) -> Iterator[str]:
    """Iterate over the terms of each chunk, once for each chunk."""
    return (term for chunk in chunks for term in set((chunk.terms or "").split()))


def _names(passages: Sequence[StoredChunk]) -> list[str]:
    return sorted({name for chunk in passages for name in chunk.named})


def _stacked(passages: Sequence[StoredChunk], name: str) -> Vector:
    rows = (chunk.named.get(name) if name else chunk.vector for chunk in passages)
    return np.stack([row for row in rows if row is not None])


@dataclass
class _Cached:
    calibration: ScoreCalibration
    corpus_version: int
    read_at: float
    reading: bool = False


@dataclass(frozen=True)
class _Scope:
    store: Store
    ledger: Ledger
    collection: str
    tenant: str
    unreadable: Unreadable
    models: Hashable

    @property
    def key(self) -> Hashable:
        """What the sample depends on; readers who may read the same share one."""
        return self.store.kind, self.collection, self.tenant, self.unreadable, self.models


class ScoreCalibrations:
    """The cached samples of this process. Threads may share one instance.

    The first question to a collection waits until the sample is read, and with fewer than LEAST
    passages also the first one after each change of the collection. A larger sample is used for
    `fresh_seconds`, one of fewer than SAMPLE passages for as much less: during ingestion few
    questions wait for it. A full sample is read again in a background thread.
    """

    def __init__(self, ledger: Ledger, *, fresh_seconds: float = FRESH_SECONDS) -> None:
        self._ledger = ledger
        self._fresh_seconds = fresh_seconds
        self._samples: Cache[_Cached] = Cache(MOST_CACHED)

    def of(
        self,
        store: Store,
        collection: str,
        tenant: str,
        corpus_version: int,
        *,
        ledger: Ledger | None = None,
        unreadable: Unreadable = NOTHING_UNREADABLE,
        models: Hashable = (),
    ) -> ScoreCalibration:
        """Return the sample of a collection and tenant, without what is `unreadable`.

        `corpus_version` is the current version of the corpus; the sample may be of an earlier one.
        `ledger` is that of the reader, `models` are the models of the collection's vectors.
        """
        scope = _Scope(store, ledger or self._ledger, collection, tenant, unreadable, models)
        cached = self._samples.get(scope.key)
        if cached is None:
            return self._read(scope, corpus_version)
        if cached.corpus_version == corpus_version:
            return cached.calibration
        size = cached.calibration.sample
        if size < min(LEAST, SAMPLE):
            return self._read(scope, corpus_version)
        fresh = self._fresh_seconds * size / SAMPLE
        if cached.reading or time.monotonic() - cached.read_at <= fresh:
            return cached.calibration
        cached.reading = True  # at worst two threads read it
        if size < SAMPLE:
            try:
                return self._read(scope, corpus_version)
            finally:
                cached.reading = False
        arguments = (cached, scope, corpus_version)
        threading.Thread(target=self._read_beside, args=arguments, daemon=True).start()
        return cached.calibration

    def _read(self, scope: _Scope, corpus_version: int) -> ScoreCalibration:
        calibration = sample(
            scope.store, scope.ledger, scope.collection, scope.tenant, scope.unreadable
        )
        self._samples.put(scope.key, _Cached(calibration, corpus_version, time.monotonic()))
        return calibration

    def _read_beside(self, cached: _Cached, scope: _Scope, corpus_version: int) -> None:
        try:
            self._read(scope, corpus_version)
        except CallslipError as error:
            log.warning("the sample of %s stays as it was: %s", scope.collection, error.detail)
        finally:
            cached.reading = False
