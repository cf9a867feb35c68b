"""Time one store's contract beside its bare client: `python -m evals.stores --store chroma`.

Both sides work on the same server and take turns, batch by batch and query by query, so that what
else the machine does meets both. The addresses are those of the settings; without `chroma.url` a
Chroma server is started for the time.
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

from callslip.errors import CallslipError, StartError
from config.load import load
from config.settings import Settings, StoreKind
from evals.stores.bare.base import KIND, Bare
from evals.stores.place import placed
from evals.stores.rows import DIMENSION, Question, Rows
from stores.contract import Store
from stores.filters import Where, parse
from stores.records import ChunkRecord, CollectionSchema, VectorSpec
from stores.registry import make_store

COLLECTION = "bench-stores"
BATCHES = (64, 256, 1000)
TIMED_ROWS = 4000
"""Rows of each batch size that are timed; the rest is written by the largest."""

QUERIES, LIMIT = 200, 100
START_SECONDS = 60.0


@dataclass
class Pair:
    """Seconds of the same work, by the contract and by the bare client."""

    work: str
    ours: list[float] = field(default_factory=list)
    bare: list[float] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        """Ours by the bare client's, of the whole."""
        return sum(self.ours) / sum(self.bare)

    def __iadd__(self, other: "Pair") -> Self:
        self.ours += other.ours
        self.bare += other.bare
        return self


def main() -> None:
    """Measure and print Markdown; a failure prints what is wrong and exits with 1."""
    parser = argparse.ArgumentParser(prog="python -m evals.stores", description=__doc__)
    parser.add_argument("--store", choices=get_args(StoreKind), default="chroma")
    parser.add_argument("--chunks", type=int, default=10_000, help="in the collection")
    options = parser.parse_args()
    try:
        with placed(load().settings, options.store) as settings:
            run(settings, options.store, options.chunks)
    except CallslipError as error:
        sys.exit(f"{error.detail}\n{error.advice}")


def run(settings: Settings, kind: str, count: int) -> None:
    """Fill both sides and ask them; prints as it goes."""
    with closing(make_store(settings, kind)) as store:
        bare = make_bare(settings, kind)
        store.drop_collection(COLLECTION)
        store.ensure_schema(CollectionSchema(COLLECTION, VectorSpec(DIMENSION, normalized=True)))
        bare.create(DIMENSION)
        try:
            rows = Rows()
            print(f"{kind}, {count:,} chunks\n")
            print("| upsert, chunks a batch | contract, chunks/s | bare, chunks/s | ratio |")
            print("| --- | --- | --- | --- |")
            done, whole = 0, Pair("all, and what waits for the end")
            for size in BATCHES:
                timed = min(TIMED_ROWS, count // len(BATCHES))
                pair = _fill(store, bare, rows.chunks(timed, done), size)
                done += timed
                if bare.writes:
                    _row(str(size), timed, pair)
                whole += pair
            whole += _fill(store, bare, rows.chunks(count - done, done), BATCHES[-1])
            whole += Pair("", [_seconds(store.maintain)], [_seconds(bare.settle)])
            _row(whole.work, count, whole)
            print("\n| query, 100 hits | contract p50, p95 ms | bare p50, p95 ms | ratio |")
            print("| --- | --- | --- | --- |")
            for pair in ask(store, bare, rows.questions(QUERIES)):
                print(
                    f"| {pair.work} | {_told(pair.ours)} | {_told(pair.bare)} | {pair.ratio:.2f} |",
                    flush=True,
                )
        finally:
            bare.drop()
            store.drop_collection(COLLECTION)


def make_bare(settings: Settings, kind: str) -> Bare:
    """The bare client of a kind of store."""
    module = importlib.import_module(f"evals.stores.bare.{kind}")  # each takes a second to import
    made: Bare = getattr(module, f"Bare{kind.capitalize()}")(settings)
    return made


def _fill(store: Store, bare: Bare, chunks: Iterator[ChunkRecord], size: int) -> Pair:
    pair = Pair("upsert")
    while batch := [chunk for _, chunk in zip(range(size), chunks, strict=False)]:
        pair.ours.append(_seconds(partial(_written, store, batch)))
        pair.bare.append(_seconds(partial(bare.upsert, batch)))
    return pair


def _row(work: str, count: int, pair: Pair) -> None:
    ours, theirs = count / sum(pair.ours), count / sum(pair.bare)
    print(f"| {work} | {ours:,.0f} | {theirs:,.0f} | {pair.ratio:.2f} |", flush=True)


def _written(store: Store, batch: Sequence[ChunkRecord]) -> None:
    failed = store.batch_upsert_chunks(COLLECTION, batch).failed
    if failed:
        raise StartError(f"{len(failed)} chunks were refused: {next(iter(failed.values()))}")


def ask(store: Store, bare: Bare, questions: Sequence[Question]) -> Iterator[Pair]:
    """Each leg and both, with and without a filter."""
    for filtered in (False, True):
        legs = {leg: Pair(f"{leg}, {'filtered' if filtered else 'all'}") for leg in _LEGS}
        for number, question in enumerate(questions):
            for leg, pair in legs.items():
                ours, theirs = _LEGS[leg](store, bare, question, filtered)
                took = {side: _seconds(call) for side, call in _turned(number, ours, theirs)}
                if number >= len(questions) // 10:  # the first tenth warms caches
                    pair.ours.append(took["ours"])
                    pair.bare.append(took["bare"])
        yield from legs.values()


Call = Callable[[], object]


def _vector(store: Store, bare: Bare, q: Question, filtered: bool) -> tuple[Call, Call]:
    where, kind = _filter(q, filtered)
    return (
        lambda: store.vector_query(COLLECTION, q.vector, LIMIT, where),
        lambda: bare.vector(q.vector, LIMIT, kind),
    )


def _keyword(store: Store, bare: Bare, q: Question, filtered: bool) -> tuple[Call, Call]:
    where, kind = _filter(q, filtered)
    return (
        lambda: store.keyword_query(COLLECTION, q.terms, LIMIT, where),
        lambda: bare.keyword(q.terms, LIMIT, kind),
    )


def _hybrid(store: Store, bare: Bare, q: Question, filtered: bool) -> tuple[Call, Call]:
    where, kind = _filter(q, filtered)
    return (
        lambda: store.hybrid_query(COLLECTION, q.vector, q.terms, LIMIT, where),
        lambda: bare.hybrid(q.vector, q.terms, LIMIT, kind),
    )


_LEGS = {"vector": _vector, "keyword": _keyword, "hybrid": _hybrid}


def _filter(question: Question, filtered: bool) -> tuple[Where | None, str | None]:
    """The same filter for both sides; none where everything is searched."""
    if not filtered:
        return None, None
    return parse({KIND: question.kind}, None), question.kind


def _turned(number: int, ours: Call, bare: Call) -> list[tuple[str, Call]]:
    """Whoever comes second finds the server's caches warm: they take turns."""
    both = [("ours", ours), ("bare", bare)]
    return both if number % 2 else both[::-1]


def _seconds(call: Call) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def _told(seconds: Sequence[float]) -> str:
    p50, p95 = np.percentile(np.array(seconds) * 1000, (50, 95))
    return f"{p50:.1f}, {p95:.1f}"


if __name__ == "__main__":
    main()
