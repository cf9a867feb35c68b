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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from callslip.errors import CallslipError
from callslip.retrieval.caches import Cache
from callslip.stores.contract import Store
from callslip.stores.fusion import Scale
from callslip.stores.ledger import Ledger
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

READ = 3 * SAMPLE
"""Chunks that are read for a sample; a document of one passage has two parent chunks as well."""

FRESH_SECONDS = 60.0
"""The minimum age in seconds before a full sample is read again."""

MOST_CACHED = 256
"""The maximum number of samples (one per collection and tenant, 1 to 3 MB) in one process."""

K1_PLUS_1 = 2.2
"""The upper bound of a term's BM25 score per unit of its idf: k1 + 1, with k1 = 1.2."""


@dataclass(frozen=True)
class ScoreCalibration:
    """A sample of a collection's passages.

    `vectors` maps a vector name to an array of shape (sample, dimension). `frequencies` maps a term
    to the number of sample passages that contain the term. `sample` is the number of passages in
    the sample, `passages` the number of passages in the collection. `terms` has the terms of
    each passage of the sample in order, each between spaces.
    """

    vectors: Mapping[str, Vector]
    frequencies: Mapping[str, int]
    sample: int
    passages: int
    terms: Sequence[str] = ()

    def scale(
        self, vector: Vector | None, vector_name: str, metric: Metric, terms: str, bm25: bool
    ) -> Scale | None:
        """Return the scale that makes the retrievers' scores for this question comparable.

        Returns None if the sample is too small. `bm25` is false if the keyword retriever returns
        cosines, whose maximum is 1.
        """
        rows = self.vectors.get(vector_name)
        if self.sample < LEAST or (vector is not None and (rows is None or len(rows) < LEAST)):
            return None
        mean, deviation = 0.0, 0.0
        if vector is not None and rows is not None:
            sample_scores = scores(metric, vector, rows)
            mean, deviation = float(sample_scores.mean()), float(sample_scores.std())
        information = self.most(terms) / K1_PLUS_1
        return Scale(mean, deviation, K1_PLUS_1 * information if bm25 else 1.0, information)

    def most(self, terms: str) -> float:
        """Return the upper bound of a passage's BM25 score: (k1 + 1) times the sum of the idf."""
        idf = self.idf(terms)
        return K1_PLUS_1 * sum(n * idf[term] for term, n in Counter(terms.split()).items())

    def idf(self, terms: str) -> dict[str, float]:
        """Return each term's inverse document frequency for BM25 (Robertson and Zaragoza 2009).

        `ln(1 + (N - n + .5) / (n + .5))`, where n of N passages contain the term; n is estimated
        from the sample. Without a sample every term has the same weight.
        """
        weights = {}
        share = self.passages / max(self.sample, 1)
        for term in set(terms.split()):
            n = self.frequencies.get(term, 0) * share
            weights[term] = math.log(1 + (self.passages - n + 0.5) / (n + 0.5))
        return weights


NO_SAMPLE = ScoreCalibration({}, {}, 0, 0)

ALL_PASSAGES = Where(every=(PASSAGES,))


def sample(store: Store, ledger: Ledger, collection: str, tenant: str) -> ScoreCalibration:
    """Read a sample. Chunk ids are hashes, so the first ids are a random sample."""
    ids = ledger.chunks.first_visible(collection, tenant, READ)
    passages: list[StoredChunk] = []
    for start in range(0, len(ids), SAMPLE):
        passages += (
            chunk
            for chunk in store.get_chunks(
                collection,
                ids[start : start + SAMPLE],
                tenant=tenant,
                include_vector=True,
                include_terms=True,
            )
            if chunk.level >= PASSAGE
        )
        if len(passages) >= SAMPLE:
            break
    passages = passages[:SAMPLE]
    if not passages:
        return NO_SAMPLE
    frequencies = Counter(term for chunk in passages for term in set((chunk.terms or "").split()))
    return ScoreCalibration(
        {name: _stacked(passages, name) for name in ("", *_names(passages))},
        frequencies,
        len(passages),
        max(len(passages), store.count(collection, ALL_PASSAGES, tenant=tenant)),
        [f" {chunk.terms or ''} " for chunk in passages],
    )


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


class ScoreCalibrations:
    """The cached samples of this process. Threads may share one instance.

    The first question to a collection waits until the sample is read. While the sample has fewer
    than SAMPLE passages, a question also waits after each change of the collection. A full sample
    is read again in a background thread.
    """

    def __init__(self, ledger: Ledger, *, fresh_seconds: float = FRESH_SECONDS) -> None:
        self._ledger = ledger
        self._fresh_seconds = fresh_seconds
        self._samples: Cache[_Cached] = Cache(MOST_CACHED)

    def of(
        self, store: Store, collection: str, tenant: str, corpus_version: int
    ) -> ScoreCalibration:
        """Return the sample of a collection and tenant.

        `corpus_version` is the current version of the corpus. The sample may be of an earlier one.
        """
        cached = self._samples.get((store.kind, collection, tenant))
        if cached is None or (
            cached.calibration.sample < SAMPLE and cached.corpus_version != corpus_version
        ):
            return self._read(store, collection, tenant, corpus_version)
        old = time.monotonic() - cached.read_at > self._fresh_seconds
        if cached.corpus_version != corpus_version and old and not cached.reading:
            cached.reading = True  # at worst two threads read it
            arguments = (cached, store, collection, tenant, corpus_version)
            threading.Thread(target=self._read_beside, args=arguments, daemon=True).start()
        return cached.calibration

    def _read(
        self, store: Store, collection: str, tenant: str, corpus_version: int
    ) -> ScoreCalibration:
        calibration = sample(store, self._ledger, collection, tenant)
        self._samples.put(
            (store.kind, collection, tenant), _Cached(calibration, corpus_version, time.monotonic())
        )
        return calibration

    def _read_beside(
        self, cached: _Cached, store: Store, collection: str, tenant: str, corpus_version: int
    ) -> None:
        try:
            self._read(store, collection, tenant, corpus_version)
        except CallslipError as error:
            log.warning("the sample of %s stays as it was: %s", collection, error.detail)
        finally:
            cached.reading = False
