"""How large a collection the TF-IDF store carries.

`python -m evals.stores.tfidf_scale --chunks 100000`

Terms are drawn by Zipf's law from 200,000 words, 60 to 140 a chunk; vectors are random, of 384
numbers and length 1. Prints one line of JSON and one row of the table in docs/performance.md.
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

from config.settings import Settings, TfidfSettings
from stores.contract import Store
from stores.filters import parse
from stores.records import ChunkRecord, CollectionSchema, Vector, VectorSpec
from stores.registry import make_store

DIMENSION = 384
WORDS = 200_000
CHUNKS_PER_DOCUMENT = 20
BATCH = 1000
QUERY_WORDS = 8
NAME = "scale"


class Library:
    """Chunks and queries, the same for the same seed."""

    def __init__(self, seed: int = 7) -> None:
        self._rng = np.random.default_rng(seed)
        shares = 1 / np.arange(1, WORDS + 1)
        self._steps = np.cumsum(shares / shares.sum())

    def chunks(self, number: int, start: int = 0) -> Iterator[ChunkRecord]:
        """So many chunks, numbered from `start`."""
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
        """So many words."""
        drawn = np.searchsorted(self._steps, self._rng.random(number))
        return " ".join(f"w{word}" for word in drawn)

    def vector(self) -> Vector:
        """A random direction."""
        drawn = self._rng.standard_normal(DIMENSION, dtype=np.float32)
        return np.asarray(drawn / np.linalg.norm(drawn), np.float32)


def main() -> None:
    """Fill a store in a temporary folder and measure it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, default=10_000)
    parser.add_argument("--queries", type=int, default=100)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(tfidf=TfidfSettings(folder=Path(folder)))
        found = measure(settings, asked.chunks, asked.queries)
    print(json.dumps(found))
    print(f"| {' | '.join(found)} |")
    print(f"| {' | '.join(str(value) for value in found.values())} |")


def measure(settings: Settings, chunks: int, queries: int) -> dict[str, str | float]:
    """Write, refit in a process of its own, open and search; times of queries are p50 / p95."""
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
        times["keyword after a write ms"] = told(after_writes(store, fresh))
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
    """Refit as the maintenance worker does: seconds, and the most memory of the process."""
    with closing(make_store(settings, "tfidf")) as store:
        took = seconds(store.maintain)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return took, most if sys.platform == "darwin" else most * 1024


def searches(store: Store, library: Library, queries: int) -> dict[str, str]:
    """Both legs without a filter, with one that is asked again and again, and with new ones."""
    words = [library.terms(QUERY_WORDS) for _ in range(queries)]
    vectors = [library.vector() for _ in range(queries)]
    half, tiny = parse({"lang": "ko"}, None), parse({"department": "department 7"}, None)
    filters = {"": None, ", half passes": half, ", 2 % pass": tiny}
    times = {}
    for name, where in filters.items():
        took = [seconds(partial(store.keyword_query, NAME, q, 100, where)) for q in words]
        times[f"keyword{name} ms"] = told(took)
    for name, where in filters.items():
        took = [seconds(partial(store.vector_query, NAME, v, 100, where)) for v in vectors]
        times[f"vector{name} ms"] = told(took)
    fresh = [parse({"lang": "ko", "filename !=": f"file{i}.txt"}, None) for i in range(queries)]
    both = zip(vectors, fresh, strict=True)
    took = [seconds(partial(store.vector_query, NAME, v, 100, w)) for v, w in both]
    return {**times, "vector, filter never asked before ms": told(took)}


def after_writes(store: Store, chunks: Sequence[ChunkRecord]) -> Iterator[float]:
    """Search right after each write of one chunk."""
    for chunk in chunks:
        store.batch_upsert_chunks(NAME, [chunk])
        yield seconds(partial(store.keyword_query, NAME, chunk.terms[:40], 100))


def seconds(act: Callable[[], object]) -> float:
    """How long it takes."""
    started = time.perf_counter()
    act()
    return time.perf_counter() - started


def told(times: Iterable[float]) -> str:
    """`p50 / p95`, in milliseconds."""
    p50, p95 = np.percentile(list(times), [50, 95]) * 1000
    return f"{p50:.1f} / {p95:.1f}"


if __name__ == "__main__":
    main()
