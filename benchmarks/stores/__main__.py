"""Compare the store contract with a baseline client: `python -m benchmarks.stores --store chroma`.

Both sides work on the same server and take turns, batch by batch and query by query, so that other
work of the machine affects both. The settings have the addresses; without `chroma.url` the
benchmark starts a Chroma server.
"""

import argparse
import importlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import Self, get_args

import numpy as np

from benchmarks.stores.baseline.base import KIND, Baseline
from benchmarks.stores.rows import DIMENSION, Question, Rows
from benchmarks.stores.scratch import placed
from callslip.config.load import load
from callslip.config.settings import Settings, StoreKind
from callslip.errors import CallslipError, StartError
from callslip.stores.contract import Store
from callslip.stores.properties.filters import Where, parse
from callslip.stores.records import ChunkRecord, CollectionSchema, VectorSpec
from callslip.stores.registry import make_store

COLLECTION = "bench-stores"
BATCHES = (64, 256, 1000)
TIMED_ROWS = 4000
"""The number of rows timed for each batch size; the largest batches write all other rows."""

QUERIES, LIMIT = 200, 100
START_SECONDS = 60.0


@dataclass
class Pair:
    """Seconds of the same work for the contract and for the baseline client."""

    work: str
    ours: list[float] = field(default_factory=list)
    baseline: list[float] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        """The total time of the contract divided by that of the baseline client."""
        return sum(self.ours) / sum(self.baseline)

    def __iadd__(self, other: "Pair") -> Self:
        self.ours += other.ours
        self.baseline += other.baseline
        return self


def main() -> None:
    """Measure and print Markdown; after a failure, print the reason and exit with 1."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stores", description=__doc__)
    parser.add_argument("--store", choices=get_args(StoreKind), default="chroma")
    parser.add_argument("--chunks", type=int, default=10_000, help="in the collection")
    options = parser.parse_args()
    try:
        with placed(load().settings, options.store) as settings:
            run(settings, options.store, options.chunks)
    except CallslipError as error:
        sys.exit(f"{error.detail}\n{error.advice}")


def run(settings: Settings, kind: str, count: int) -> None:
    """Fill and query both sides; print each result at once."""
    with closing(make_store(settings, kind)) as store:
        baseline = make_baseline(settings, kind)
        store.drop_collection(COLLECTION)
        store.ensure_schema(CollectionSchema(COLLECTION, VectorSpec(DIMENSION, normalized=True)))
        baseline.create(DIMENSION)
        try:
            rows = Rows()
            print(f"{kind}, {count:,} chunks\n")
            print("| upsert, chunks a batch | contract, chunks/s | baseline, chunks/s | ratio |")
            print("| --- | --- | --- | --- |")
            done, whole = 0, Pair("all, and what waits for the end")
            for size in BATCHES:
                timed = min(TIMED_ROWS, count // len(BATCHES))
                pair = _fill(store, baseline, rows.chunks(timed, done), size)
                done += timed
                if baseline.writes:
                    _row(str(size), timed, pair)
                whole += pair
            whole += _fill(store, baseline, rows.chunks(count - done, done), BATCHES[-1])
            whole += Pair("", [_seconds(store.maintain)], [_seconds(baseline.settle)])
            _row(whole.work, count, whole)
            print("\n| query, 100 hits | contract p50, p95 ms | baseline p50, p95 ms | ratio |")
            print("| --- | --- | --- | --- |")
            for pair in ask(store, baseline, rows.questions(QUERIES)):
                ours, theirs = _milliseconds(pair.ours), _milliseconds(pair.baseline)
                print(f"| {pair.work} | {ours} | {theirs} | {pair.ratio:.2f} |", flush=True)
        finally:
            baseline.drop()
            store.drop_collection(COLLECTION)


def make_baseline(settings: Settings, kind: str) -> Baseline:
    """Make the baseline client of a kind of store."""
    module = importlib.import_module(
        f"benchmarks.stores.baseline.{kind}"
    )  # each takes a second to import
    made: Baseline = getattr(module, f"Baseline{kind.capitalize()}")(settings)
    return made


def _fill(store: Store, baseline: Baseline, chunks: Iterator[ChunkRecord], size: int) -> Pair:
    pair = Pair("upsert")
    while batch := [chunk for _, chunk in zip(range(size), chunks, strict=False)]:
        pair.ours.append(_seconds(partial(_written, store, batch)))
        pair.baseline.append(_seconds(partial(baseline.upsert, batch)))
    return pair


def _row(work: str, count: int, pair: Pair) -> None:
    ours, theirs = count / sum(pair.ours), count / sum(pair.baseline)
    print(f"| {work} | {ours:,.0f} | {theirs:,.0f} | {pair.ratio:.2f} |", flush=True)


def _written(store: Store, batch: Sequence[ChunkRecord]) -> None:
    failed = store.batch_upsert_chunks(COLLECTION, batch).failed
    if failed:
        raise StartError(f"{len(failed)} chunks were refused: {next(iter(failed.values()))}")


def ask(store: Store, baseline: Baseline, questions: Sequence[Question]) -> Iterator[Pair]:
    """Time each retriever and the hybrid search, with and without a filter."""
    for filtered in (False, True):
        pairs = {
            retriever: Pair(f"{retriever}, {'filtered' if filtered else 'all'}")
            for retriever in _RETRIEVERS
        }
        for number, question in enumerate(questions):
            for retriever, pair in pairs.items():
                ours, theirs = _RETRIEVERS[retriever](store, baseline, question, filtered)
                took = {side: _seconds(call) for side, call in _turned(number, ours, theirs)}
                if number >= len(questions) // 10:  # the first tenth fills caches
                    pair.ours.append(took["ours"])
                    pair.baseline.append(took["baseline"])
        yield from pairs.values()


Call = Callable[[], object]


def _vector(store: Store, baseline: Baseline, q: Question, filtered: bool) -> tuple[Call, Call]:
    where, kind = _filter(q, filtered)
    return (
        lambda: store.vector_query(COLLECTION, q.vector, LIMIT, where),
        lambda: baseline.vector(q.vector, LIMIT, kind),
    )


def _keyword(store: Store, baseline: Baseline, q: Question, filtered: bool) -> tuple[Call, Call]:
    where, kind = _filter(q, filtered)
    return (
        lambda: store.keyword_query(COLLECTION, q.terms, LIMIT, where),
        lambda: baseline.keyword(q.terms, LIMIT, kind),
    )


def _hybrid(store: Store, baseline: Baseline, q: Question, filtered: bool) -> tuple[Call, Call]:
    where, kind = _filter(q, filtered)
    return (
        lambda: store.hybrid_query(COLLECTION, q.vector, q.terms, LIMIT, where),
        lambda: baseline.hybrid(q.vector, q.terms, LIMIT, kind),
    )


_RETRIEVERS = {"vector": _vector, "keyword": _keyword, "hybrid": _hybrid}


def _filter(question: Question, filtered: bool) -> tuple[Where | None, str | None]:
    """Return the same filter in the forms of both sides, or None for each."""
    if not filtered:
        return None, None
    return parse({KIND: question.kind}, None), question.kind


def _turned(number: int, ours: Call, baseline: Call) -> list[tuple[str, Call]]:
    """Return both calls in alternating order, because the second one finds the caches filled."""
    both = [("ours", ours), ("baseline", baseline)]
    return both if number % 2 else both[::-1]


def _seconds(call: Call) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def _milliseconds(seconds: Sequence[float]) -> str:
    p50, p95 = np.percentile(np.array(seconds) * 1000, (50, 95))
    return f"{p50:.1f}, {p95:.1f}"


if __name__ == "__main__":
    main()
