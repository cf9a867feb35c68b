"""What scores mean in a collection: a sample of its passages to hold a question against.

The cosine of 0.86 says little; that it lies six standard deviations above those of any passages of
the collection says much. So with a BM25 score: it is held against the score of a passage that says
all words of the question. docs/quality.md has what that is worth.
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
from retrieval.caches import Cache
from stores.contract import Store
from stores.filters import Where
from stores.fusion import Scale
from stores.ledger import Ledger
from stores.levels import PASSAGE, PASSAGES
from stores.metrics import Metric, scores
from stores.records import StoredChunk, Vector

log = logging.getLogger(__name__)

SAMPLE = 512
"""Passages; 256 to all of 6,000 gave the same nDCG@10 within .002 on four judged sets."""

LEAST = 32
"""Passages of which a mean and a deviation say something."""

READ = 3 * SAMPLE
"""Chunks that are read for it: documents of one passage have two parents for it."""

FRESH_SECONDS = 60.0
"""A sample younger than this is not looked at again."""

MOST_KEPT = 256
"""Collections and tenants whose samples one process keeps, of 1 to 3 MB each."""

K1_PLUS_1 = 2.2
"""What a term that fills a text adds to BM25 for each unit of its idf (k1 = 1.2)."""


@dataclass(frozen=True)
class Background:
    """A sample of a collection's passages. `passages` is how many there are in all.

    `vectors` by name, each of shape (sample, dimension); `frequencies` is in how many passages of
    the sample a term stands.
    """

    vectors: Mapping[str, Vector]
    frequencies: Mapping[str, int]
    sample: int
    passages: int

    def scale(
        self, vector: Vector | None, vector_name: str, metric: Metric, terms: str, bm25: bool
    ) -> Scale | None:
        """What the legs' scores for this question are worth; None where the sample is too small.

        Where the keyword leg is not BM25, its scores are cosines: 1 is the most.
        """
        rows = self.vectors.get(vector_name)
        if self.sample < LEAST or (vector is not None and (rows is None or len(rows) < LEAST)):
            return None
        mean, deviation = 0.0, 0.0
        if vector is not None and rows is not None:
            found = scores(metric, vector, rows)
            mean, deviation = float(found.mean()), float(found.std())
        return Scale(mean, deviation, self.most(terms) if bm25 else 1.0)

    def most(self, terms: str) -> float:
        """The BM25 score of a passage that is full of each term: (k1 + 1) times the sum of idf."""
        idf = self.idf(terms)
        return K1_PLUS_1 * sum(n * idf[term] for term, n in Counter(terms.split()).items())

    def idf(self, terms: str) -> dict[str, float]:
        """Inverse document frequency as BM25 has it (Robertson and Zaragoza 2009), by the sample.

        `ln(1 + (N - n + .5) / (n + .5))` with n passages of N that have the term. Without a sample
        all terms are alike.
        """
        found = {}
        share = self.passages / max(self.sample, 1)
        for term in set(terms.split()):
            n = self.frequencies.get(term, 0) * share
            found[term] = math.log(1 + (self.passages - n + 0.5) / (n + 0.5))
        return found


NOTHING = Background({}, {}, 0, 0)

ALL_PASSAGES = Where(every=(PASSAGES,))


def sample(store: Store, ledger: Ledger, collection: str, tenant: str) -> Background:
    """Read a sample: chunk ids are hashes, so the first of them are as good as drawn."""
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
        return NOTHING
    frequencies = Counter(term for chunk in passages for term in set((chunk.terms or "").split()))
    return Background(
        {name: _stacked(passages, name) for name in ("", *_names(passages))},
        frequencies,
        len(passages),
        max(len(passages), store.count(collection, ALL_PASSAGES, tenant=tenant)),
    )


def _names(passages: Sequence[StoredChunk]) -> list[str]:
    return sorted({name for chunk in passages for name in chunk.named})


def _stacked(passages: Sequence[StoredChunk], name: str) -> Vector:
    rows = (chunk.named.get(name) if name else chunk.vector for chunk in passages)
    return np.stack([row for row in rows if row is not None])


@dataclass
class _Kept:
    background: Background
    stamp: int
    read_at: float
    reading: bool = False


class Backgrounds:
    """The samples that this process works with. Threads may share it.

    The first question to a collection waits for its sample, and every one while that is smaller
    than SAMPLE and the collection changes; a whole sample is read anew beside the searches.
    """

    def __init__(self, ledger: Ledger, *, fresh_seconds: float = FRESH_SECONDS) -> None:
        self._ledger = ledger
        self._fresh_seconds = fresh_seconds
        self._kept: Cache[_Kept] = Cache(MOST_KEPT)

    def of(self, store: Store, collection: str, tenant: str, stamp: int) -> Background:
        """The sample of a collection, or a tenant of it; `stamp` says which state it is in."""
        kept = self._kept.get((store.kind, collection, tenant))
        if kept is None or (kept.background.sample < SAMPLE and kept.stamp != stamp):
            return self._read(store, collection, tenant, stamp)
        old = time.monotonic() - kept.read_at > self._fresh_seconds
        if kept.stamp != stamp and old and not kept.reading:
            kept.reading = True  # twice at worst
            arguments = (kept, store, collection, tenant, stamp)
            threading.Thread(target=self._read_beside, args=arguments, daemon=True).start()
        return kept.background

    def _read(self, store: Store, collection: str, tenant: str, stamp: int) -> Background:
        found = sample(store, self._ledger, collection, tenant)
        self._kept.put((store.kind, collection, tenant), _Kept(found, stamp, time.monotonic()))
        return found

    def _read_beside(
        self, kept: _Kept, store: Store, collection: str, tenant: str, stamp: int
    ) -> None:
        try:
            self._read(store, collection, tenant, stamp)
        except CallslipError as error:
            log.warning("the sample of %s stays as it was: %s", collection, error.detail)
        finally:
            kept.reading = False
