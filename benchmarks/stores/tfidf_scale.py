"""Measures the TF-IDF store with large collections.

`python -m benchmarks.stores.tfidf_scale --chunks 100000`

Each chunk has 60 to 140 terms from 200,000 words, distributed according to Zipf's law. Vectors are
random, with 384 dimensions and length 1. The benchmark prints one line of JSON and one row of the
table in docs/performance.md.
"""

import argparse
import json
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np
import psutil

from callslip.config.settings import Settings, TfidfSettings
from callslip.stores.contract import Store
from callslip.stores.properties.filters import parse
from callslip.stores.records import ChunkRecord, CollectionSchema, Vector, VectorSpec
from callslip.stores.registry import make_store

DIMENSION = 384
WORDS = 200_000
CHUNKS_PER_DOCUMENT = 20
BATCH = 1000
QUERY_WORDS = 8
NAME = "scale"


class Library:
    """Makes chunks and queries; the same seed makes the same ones."""

    def __init__(self, seed: int = 7) -> None:
        self._rng = np.random.default_rng(seed)
        shares = 1 / np.arange(1, WORDS + 1)
        self._steps = np.cumsum(shares / shares.sum())

    def chunks(self, number: int, start: int = 0) -> Iterator[ChunkRecord]:
        """Iterate over `number` chunks, numbered from `start`."""
        for i in range(start, start + number):
            terms = self.terms(int(self._rng.integers(60, 140)))
            yield ChunkRecord(
                chunk_id=f"c{i:08}",
                document_id=f"d{i // CHUNKS_PER_DOCUMENT}",
                body=terms,
                terms=terms,
                vector=self.vector(),
                filename=f"file{i // CHUNKS_PER_DOCUMENT}.txt",
                lang=("en", "ko")[i % 2],
                ordinal=i % CHUNKS_PER_DOCUMENT,
                properties={"department": f"department {i % 50}", "year": 2000 + i % 25},
            )

    def terms(self, number: int) -> str:
        """Return `number` random words."""
        drawn = np.searchsorted(self._steps, self._rng.random(number))
        return " ".join(f"w{word}" for word in drawn)

    def vector(self) -> Vector:
        """Return a random unit vector."""
        drawn = self._rng.standard_normal(DIMENSION, dtype=np.float32)
        return np.asarray(drawn / np.linalg.norm(drawn), np.float32)


def main() -> None:
    """Fill a store in a temporary folder and measure it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, default=10_000)
    parser.add_argument("--queries", type=int, default=100)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(tfidf=TfidfSettings(folder=Path(folder)))
        times = measure(settings, options.chunks, options.queries)
    print(json.dumps(times))
    print(f"| {' | '.join(times)} |")
    print(f"| {' | '.join(str(value) for value in times.values())} |")


def measure(settings: Settings, chunks: int, queries: int) -> dict[str, str | float]:
    """Write, refit in another process, open and search; the times of queries are p50 / p95."""
    library = Library()
    with closing(make_store(settings, "tfidf")) as store:
        store.ensure_schema(CollectionSchema(NAME, VectorSpec(DIMENSION, normalized=True)))
        written = 0.0
        for start in range(0, chunks, BATCH):
            some = list(library.chunks(min(BATCH, chunks - start), start))
            written += seconds(partial(store.batch_upsert_chunks, NAME, some))
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        refit, peak = pool.submit(refitted, settings).result()
    disk = sum(f.stat().st_size for f in settings.tfidf_dir.rglob("*") if f.is_file())
    mapped = sum(f.stat().st_size for f in settings.tfidf_dir.rglob("*.npy"))
    before = psutil.Process().memory_info().rss
    with closing(make_store(settings, "tfidf")) as store:
        opened = seconds(lambda: store.keyword_query(NAME, "w0", 10))
        times = searches(store, library, queries)
        after = psutil.Process().memory_info().rss
        fresh = list(library.chunks(queries, chunks))
        times["keyword after a write ms"] = milliseconds(after_writes(store, fresh))
        return {
            "chunks": chunks,
            "write s": round(written, 1),
            "refit s": round(refit, 1),
            "refit peak MB": round(peak / 1e6),
            "disk MB": round(disk / 1e6),
            "open s": round(opened, 2),
            "memory MB": round((after - before) / 1e6),
            "of it mapped MB": round(mapped / 1e6),
            **times,
        }


def refitted(settings: Settings) -> tuple[float, int]:
    """Refit as the maintenance worker does; return the seconds and the process's peak memory.

    The memory is in bytes.
    """
    with closing(make_store(settings, "tfidf")) as store:
        took = seconds(store.maintain)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return took, most if sys.platform == "darwin" else most * 1024


def searches(store: Store, library: Library, queries: int) -> dict[str, str]:
    """Time both retrievers without a filter and with repeated filters, vectors with new filters."""
    words = [library.terms(QUERY_WORDS) for _ in range(queries)]
    vectors = [library.vector() for _ in range(queries)]
    half, tiny = parse({"lang": "ko"}, None), parse({"department": "department 7"}, None)
    filters = {"": None, ", half passes": half, ", 2 % pass": tiny}
    times = {}
    for name, where in filters.items():
        took = [seconds(partial(store.keyword_query, NAME, q, 100, where)) for q in words]
        times[f"keyword{name} ms"] = milliseconds(took)
    for name, where in filters.items():
        took = [seconds(partial(store.vector_query, NAME, v, 100, where)) for v in vectors]
        times[f"vector{name} ms"] = milliseconds(took)
    fresh = [parse({"lang": "ko", "filename !=": f"file{i}.txt"}, None) for i in range(queries)]
    both = zip(vectors, fresh, strict=True)
    took = [seconds(partial(store.vector_query, NAME, v, 100, w)) for v, w in both]
    return {**times, "vector, filter never asked before ms": milliseconds(took)}


def after_writes(store: Store, chunks: Sequence[ChunkRecord]) -> Iterator[float]:
    """Write one chunk at a time; iterate over the seconds of the search after each write."""
    for chunk in chunks:
        store.batch_upsert_chunks(NAME, [chunk])
        yield seconds(partial(store.keyword_query, NAME, chunk.terms[:40], 100))


def seconds(act: Callable[[], object]) -> float:
    """Return the seconds of a call."""
    started = time.perf_counter()
    act()
    return time.perf_counter() - started


def milliseconds(times: Iterable[float]) -> str:
    """Return `p50 / p95` in milliseconds."""
    p50, p95 = np.percentile(list(times), [50, 95]) * 1000
    return f"{p50:.1f} / {p95:.1f}"


if __name__ == "__main__":
    main()
